"""``npu-shim launch`` on several hosts without NPUs: the command line of mpirun, and the rank that it starts."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from npu_shim import cli
from npu_shim.distributed.ranktable import allocation
from npu_shim.launching import host_rank
from npu_shim.launching.failure import finished_line
from npu_shim.launching.follow import FIRST
from npu_shim.launching.plan import share_cores

pytestmark = [pytest.mark.once, pytest.mark.slow]


def open_mpi(*values: int) -> str:
    """Return rank, size, local rank and local size as a shell assigns them."""
    names = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    return " ".join(f"OMPI_COMM_WORLD_{name}={value}" for name, value in zip(names, values))


def starter(folder: pathlib.Path, version: str, body: str, monkeypatch: Any) -> pathlib.Path:
    """Put an mpirun on PATH, in front of all others; it prints a version, or runs a shell script."""
    path = folder / "bin" / "mpirun"
    path.parent.mkdir()
    program(path, f'[ "$1" = --version ] && {{ echo "{version}"; exit; }}\n{body}')
    monkeypatch.setattr(allocation, "find_mpirun", lambda: str(path))
    return path


@pytest.mark.parametrize(
    "version, options",
    [
        (
            "mpirun (Open MPI) 5.0.11",
            "-np 3 --host 127.0.0.1:2,192.0.2.9:1 --map-by slot --bind-to none -x NPU_SHIM_RESTART",
        ),
        ("HYDRA build details:", "-np 3 -hosts 127.0.0.1:2,192.0.2.9:1"),
    ],
)
def test_mpirun_starts_the_ranks_of_several_hosts(
    version: str, options: str, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    """The mpirun of the test starts one of the three ranks, and may print that the others finished."""
    monkeypatch.chdir(tmp_path)
    others = "".join(finished_line(rank, "127.0.0.1") for rank in (0, 1))
    run = f'while [ "$1" != env ]; do shift; done\nprintf "$OTHERS"\n{open_mpi(2, 3, 0, 1)} exec "$@"'
    mpirun = starter(tmp_path, version, run, monkeypatch)
    names = ("JOB_ID", "RANK_ID", "RANK_SIZE", "ASCEND_DEVICE_ID", "NPU_SHIM_FALLBACK")
    (tmp_path / "a.py").write_text(
        f"import os, sys\nfrom npu_shim.distributed.world import world\nprint([os.environ[n] for n in {names}])\n"
        "print(world().servers, world().local_rank, 'TF_CONFIG' in os.environ)\nsys.exit(int(sys.argv[1]))"
    )
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "silent")
    monkeypatch.setenv("TF_CONFIG", "{}")
    line = ["launch", "-np", "3", "-H", "127.0.0.1:2,192.0.2.9:2", "--job-id", "j", "--log-dir", "logs"]
    assert cli.main([*line, "--dry-run", "a.py", "0"]) == 0
    assert f"{mpirun} {options} " in capsys.readouterr().out
    assert cli.main([*line, "a.py", "0"]) == 1
    assert re.search(
        "mpirun ended after [0-9]+ s, but ranks 0, 1 did not finish. Its log is logs/mpirun.log",
        capsys.readouterr().err,
    )
    (tmp_path / "logs" / "rank_2.log").unlink()
    monkeypatch.setenv("OTHERS", others)
    assert cli.main([*line, "a.py", "0"]) == 0
    assert "job j: 3 ranks on 2 hosts, logs in logs" in capsys.readouterr().err
    assert (tmp_path / "logs" / "rank_2.log").read_text().splitlines()[1:] == [
        "['j', '2', '3', '0', 'silent']",
        "('127.0.0.1', '127.0.0.1', '192.0.2.9') 0 False",
    ]
    assert cli.main([*line, "a.py", "7"]) == 7
    assert "mpirun failed with exit code 7" in capsys.readouterr().err
    said = (tmp_path / "logs" / "mpirun.log").read_text()
    assert "npu-shim launch: rank 2 on 192.0.2.9 failed with exit code 7. Its log is" in said
    assert "\n['j', '2', '3'" not in said  # only rank 0 is shown
    assert cli.main([*line, "--output", "all", "a.py", "0"]) == 0
    assert "[rank 2] ['j', '2', '3', '0', 'silent']\n" in (tmp_path / "logs" / "mpirun.log").read_text()


def test_restarts_of_several_hosts_with_bound_ranks(tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any) -> None:
    """The mpirun of the test starts the second rank of the first host, and ends with a code of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "silent")
    run = f'while [ "$1" != env ]; do shift; done\n{open_mpi(1, 3, 1, 2)} "$@" || exit 255'
    starter(tmp_path, "mpirun (Open MPI) 5.0.11", run, monkeypatch)
    (tmp_path / "a.py").write_text(
        "import os\nprint(os.environ['NPU_SHIM_RESTART'], os.environ['NPU_SHIM_COMMITS'], os.sched_getaffinity(0))\n"
        "os.kill(os.getpid(), 9)"
    )
    line = ["launch", "-H", "127.0.0.1:2,192.0.2.9:1", "--job-id", "j", "--log-dir", "logs", "--max-restarts", "1"]
    assert cli.main([*line, "--bind-cores", "a.py"]) == 128 + 9
    assert "mpirun failed with exit code 255" in capsys.readouterr().err
    own = set(share_cores(sorted(os.sched_getaffinity(0)), 2)[1])
    lines = (tmp_path / "logs" / "rank_1.log").read_text().splitlines()
    assert lines[1::2] == [f"{restart} {tmp_path}/logs/commits {own}" for restart in (0, 1)]


def test_ranks_of_several_hosts_need_an_mpirun_that_the_command_knows(
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    line = ["launch", "-H", "127.0.0.1:2,192.0.2.9:2", "a.py"]
    assert cli.main(line) == 2
    assert (
        "there is no mpirun, which starts processes on several hosts. Install it on each host"
        in capsys.readouterr().err
    )
    starter(tmp_path, "aprun 7", "", monkeypatch)
    assert cli.main(line) == 2
    assert "--version prints 'aprun 7', but the command knows Open MPI and MPICH." in capsys.readouterr().err
    assert cli.main([*line[:-1], "--progress", "a.py"]) == 2
    assert "--progress needs all ranks on this host" in capsys.readouterr().err


def test_ranks_of_a_table_in_another_order_than_its_hosts(
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("")
    assert cli.main(["ranktable", "make", "--hosts", "10.8.8.8:2,10.9.9.9:2", "-o", "t.json"]) == 0
    table = json.loads((tmp_path / "t.json").read_text())
    for server in table["server_list"]:
        for device in server["device"]:
            device["rank_id"] = str(3 - int(device["rank_id"]))
    (tmp_path / "t.json").write_text(json.dumps(table))
    assert cli.main(["launch", "--ranktable", "t.json", "a.py"]) == 2
    assert "t.json does not number its ranks host by host, as mpirun starts them." in capsys.readouterr().err


def test_only_processes_of_mpi_are_ended_with_a_failed_rank(tmp_path: pathlib.Path) -> None:
    """The rank has a daemon and mpirun above it, and above these the test."""
    assert host_rank._starting_processes() == {}
    (tmp_path / "rank.py").write_text(
        "from npu_shim.launching import host_rank\nprint(host_rank._starting_processes())"
    )
    last = f'"{sys.executable}" "{tmp_path / "rank.py"}"'
    for name in ("hydra_pmi_proxy", "mpirun"):
        last = program(tmp_path / name, f"echo $$\n{last}\necho end")
    done = subprocess.run([last], stdout=subprocess.PIPE, check=True, text=True)
    mpirun, daemon, starters = done.stdout.splitlines()[:3]
    found = ast.literal_eval(starters)
    assert list(found) == [int(daemon), int(mpirun)] and all(begin.isdigit() for begin in found.values())
    assert host_rank._process_name_parent_and_start(int(mpirun)) == ("", 0, "")


def test_a_rank_ends_with_the_daemon_that_started_it(tmp_path: pathlib.Path) -> None:
    environ = {**os.environ, "JOB_ID": "j", "NPU_SHIM_FALLBACK": "silent"}
    rank = f'"{sys.executable}" -m {host_rank.__name__} "{tmp_path}" {host_rank.SHARED} {FIRST} sleep 60'
    body = f"{open_mpi(1, 2, 1, 2)} {rank} &\nwait"
    with subprocess.Popen([program(tmp_path / "orted", body)], env=environ, start_new_session=True) as daemon:
        log = tmp_path / "rank_1.log"
        give_up = time.monotonic() + 30
        while not (log.exists() and log.read_text()) and time.monotonic() < give_up:
            time.sleep(0.05)
        daemon.kill()
    while len(log.read_text().splitlines()) < 2 and time.monotonic() < give_up:
        time.sleep(0.05)
    assert log.read_text().splitlines()[1:] == [
        "npu-shim launch: rank 1 ended with the process of mpirun that started it"
    ]


def program(path: pathlib.Path, body: str) -> str:
    """Write a shell script and return its path."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)
