"""``npu-shim launch --rehearse``: the ranks of all servers of a rank table on one host."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from npu_shim import cli
from npu_shim._host import host_device, host_env
from npu_shim.distributed import backend, mpi, shm
from npu_shim.distributed.ranktable import reader
from npu_shim.distributed.world import world
from npu_shim.launching.host_memory import RANK_BYTES, memory_warning
from npu_shim.launching.job_ranks import ranks_in_rehearsal, ranks_in_table
from npu_shim.launching.plan import rank_processes

pytestmark = [pytest.mark.once, pytest.mark.slow]

TWO_SERVERS = "10.0.0.8:4-5,10.0.0.9:0-2"
SCRIPT = """import os
from npu_shim.distributed.ranks import get_local_rank_id, get_local_rank_size, get_rank_id, get_rank_size, world
here = world()
print(get_rank_id(), get_rank_size(), get_local_rank_id(), get_local_rank_size(), os.environ["DEVICE_ID"],
      os.environ["ASCEND_DEVICE_ID"], here.device_id, here.servers[here.rank])
"""


@pytest.fixture
def table(tmp_path: pathlib.Path, monkeypatch: Any) -> pathlib.Path:
    """Return a rank table of two servers, with a script beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SCRIPT)
    assert cli.main(["ranktable", "make", "--hosts", TWO_SERVERS, "-o", "t.json"]) == 0
    return tmp_path / "t.json"


def run(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(pathlib.Path(cli.__file__).resolve().parents[2])
    return subprocess.run(
        [sys.executable, "-m", "npu_shim", "launch", "--log-dir", "logs", *arguments, "a.py"],
        cwd=str(folder),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
        timeout=120,
    )


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(("--ranktable", "t.json"), id="rank table"),
        pytest.param(("-H", TWO_SERVERS), id="hosts", marks=pytest.mark.nightly),
    ],
)
def test_each_rank_has_the_variables_of_its_server(job: tuple[str, str], table: pathlib.Path) -> None:
    done = run(table.parent, "--rehearse", *job)
    assert done.returncode == 0, done.stderr
    assert "rehearsal of 5 ranks of 2 servers on this host, logs in logs; showing rank 0" in done.stderr
    assert {path.name: path.read_text().splitlines()[-1] for path in (table.parent / "logs").glob("*.log")} == {
        "server_0_rank_0.log": "0 5 0 2 4 4 4 10.0.0.8",
        "server_0_rank_1.log": "1 5 1 2 5 5 5 10.0.0.8",
        "server_1_rank_2.log": "2 5 0 3 0 0 0 10.0.0.9",
        "server_1_rank_3.log": "3 5 1 3 1 1 1 10.0.0.9",
        "server_1_rank_4.log": "4 5 2 3 2 2 2 10.0.0.9",
    }


def test_a_rank_has_the_environment_of_its_real_server_and_one_variable_more(table: pathlib.Path) -> None:
    servers, path = reader.read_table(str(table)), str(table)

    def environments(ranks: Any) -> dict[int, dict[str, str]]:
        made = rank_processes(ranks.slots, ranks.world_size, ["a"], "j", "logs", ranks.table, environ={})
        return {process.rank: dict(process.environment) for process in made}

    rehearsed = environments(ranks_in_rehearsal(servers, path))
    for index in range(2):
        for rank, real in environments(ranks_in_table(servers, path, index, "")).items():
            assert rehearsed.pop(rank) == {**real, "NPU_SHIM_REHEARSAL": "1"}
    assert rehearsed == {}


def test_ranks_of_several_servers_share_memory_only_in_a_rehearsal(table: pathlib.Path, monkeypatch: Any) -> None:
    for transport in (shm, mpi):
        monkeypatch.setattr(transport, "join_job", lambda *_, made=transport.__name__, **__: made)
    variables = {"RANK_TABLE_FILE": str(table), "RANK_ID": "3"}
    for more, transport in (({}, mpi), ({"NPU_SHIM_REHEARSAL": "1"}, shm)):
        environ = {**variables, **more}
        assert backend._join_job(world(environ), host_env.read_environment(environ)) == transport.__name__


def test_variables_of_an_outer_rehearsal_are_removed(table: pathlib.Path) -> None:
    outer = {"NPU_SHIM_REHEARSAL": "1"}
    (first, *_) = ranks_in_table(reader.read_table(str(table)), str(table), 0, "").slots
    (made,) = rank_processes([first], 5, ["a"], "j", "logs", environ=outer)
    assert "NPU_SHIM_REHEARSAL" not in made.full_environment(outer)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--ranks 2", "--rehearse needs --ranktable or -H: with --ranks all ranks are on this host."),
        ("--ranktable t.json --server-index 1", "--rehearse starts the ranks of all servers, and --server-index those"),
    ],
)
def test_wrong_usage(arguments: str, message: str, table: pathlib.Path, capsys: Any) -> None:
    assert cli.main(["launch", "--rehearse", *arguments.split(), "a.py"]) == 2
    assert message in capsys.readouterr().err
    assert not os.path.exists("npu_shim_logs")


def test_a_host_with_npus(table: pathlib.Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(host_device, "detect_without_import", lambda: host_device.Device("npu", "for the test"))
    assert cli.main(["launch", "--rehearse", "--ranktable", "t.json", "a.py"]) == 2
    assert "--rehearse needs a host without NPUs" in capsys.readouterr().err


def test_too_little_memory_is_a_warning() -> None:
    assert memory_warning(4, 4 * RANK_BYTES) is None
    said = str(memory_warning(64, 10 * RANK_BYTES))
    assert said.startswith("warning: 64 ranks of a small model need about ") and "at most 10 ranks" in said
    assert memory_warning(1) is None
