"""samples/cluster/mpirun.sh on one host and on two, without NPUs and with the files of a host that has them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.distributed import mpi_ranks
from tests.distributed.trained import check_training
from tests.mpi import two_hosts
from tests.mpi.test_two_hosts import SCRIPTS, Job

SAMPLE = mpi_ranks.ROOT / "samples" / "cluster" / "mpirun.sh"


def run(folder: pathlib.Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the sample in a folder with the mpirun of this environment."""
    return subprocess.run(
        ["bash", str(SAMPLE), *command],
        cwd=folder,
        env=sample_environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def sample_environment(**variables: str) -> dict[str, str]:
    """Return the variables of the sample; Open MPI must be asked to run as root."""
    as_root = {f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for name in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    own = {"PATH": path, "PYTHON": sys.executable, "NPU_SHIM_FALLBACK": "silent"}
    return {**mpi_ranks.environment(), **as_root, **own, **variables}


@pytest.mark.parametrize("hosts", [1, 2])
def test_four_ranks_train_as_one_process(hosts: int, tmp_path: pathlib.Path) -> None:
    command = [str(SCRIPTS / "data_parallel.py"), str(tmp_path), "by_hand"]
    subprocess.run([sys.executable, *command], env=sample_environment(), check=True)
    if hosts == 1:
        done = run(tmp_path, *command)
        assert done.returncode == 0, done.stdout[-4000:]
    else:
        slots = ",".join(f"{address}:2" for address in two_hosts.ADDRESSES)
        job = Job(tmp_path / "job", "bash", str(SAMPLE), *command, **sample_environment(HOSTS=slots))
        assert job.end()["code"] == 0, job.output[-4000:]
    check_training(tmp_path, ["by_hand"])


def test_with_npus_each_rank_has_the_paths_of_cann_and_the_rank_table(tmp_path: pathlib.Path) -> None:
    (tmp_path / "set_env.sh").write_text('export OPP="$UNSET/opp"\n')
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os\nfrom npu_shim.distributed.world import world\n"
        "print(json.dumps([world().rank, world().device_id, os.environ['RANK_TABLE_FILE'], os.environ['OPP']]))\n"
    )
    done = run(tmp_path, str(script), CANN=str(tmp_path / "set_env.sh"), HOSTS="localhost:2")
    assert done.returncode == 0, done.stdout
    lines: list[Any] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    table = tmp_path / "rank_table.json"
    assert sorted(lines) == [[rank, rank, str(table), "/opp"] for rank in (0, 1)]
    assert len(json.loads(table.read_text())["server_list"][0]["device"]) == 2


def test_wrong_usage(tmp_path: pathlib.Path) -> None:
    for command, hosts, text in (
        ([], "a:1", "mpirun.sh: name the script to train: mpirun.sh train.py --steps=100"),
        (["a.py"], "a,b:2", "mpirun.sh: HOSTS=a,b:2 is not HOST:RANKS,HOST:RANKS ..."),
    ):
        done = run(tmp_path, *command, HOSTS=hosts)
        assert (done.returncode, done.stdout.strip()) == (2, text)
