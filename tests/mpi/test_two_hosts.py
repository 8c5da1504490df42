"""A job that mpirun starts on two hosts, which are network namespaces of this machine."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
import tensorflow as tf

from npu_shim import cli
from npu_shim.launching import host_rank
from tests.distributed import mpi_ranks
from tests.distributed.trained import check_training
from tests.mpi import two_hosts

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "distributed" / "scripts"
UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
DAEMONS = ("prted", "orted", "hydra_pmi_proxy")  # Open MPI 5 and 4, MPICH
VARIABLES = ("PYTHONPATH", "RANK_TABLE_FILE", "NPU_SHIM_FALLBACK", "TF_CPP_MIN_LOG_LEVEL")


class Job:
    """A command on the first of two hosts that starts ranks on both."""

    def __init__(self, folder: pathlib.Path, *command: str, **variables: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        with open(folder / "output", "wb") as stream:
            self._process = subprocess.Popen(
                [*UNSHARE, sys.executable, two_hosts.__file__, str(folder), *command],
                env={
                    **mpi_ranks.environment(),
                    "NPU_SHIM_COLLECTIVE_TIMEOUT": "15",
                    "NPU_SHIM_FALLBACK": "silent",
                    "NPU_SHIM_JOB": str(folder),
                    **variables,
                },
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def cut(self) -> None:
        """Take the link between the hosts down."""
        (self._folder / "cut").touch()

    def kill(self, rank: int) -> None:
        """Kill a rank."""
        (pid,) = [pid for pid in self.processes() if has(pid, f"RANK_ID={rank}")]
        os.kill(pid, signal.SIGKILL)

    def kill_daemon(self, rank: int) -> None:
        """Kill the daemon of mpirun that started a rank."""
        (pid,) = [pid for pid in self.processes() if has(pid, f"RANK_ID={rank}")]
        while host_rank._process_name_parent_and_start(pid)[0] not in DAEMONS:
            pid = host_rank._process_name_parent_and_start(pid)[1]
        os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Return the processes of the job on both hosts."""
        mark = f"NPU_SHIM_JOB={self._folder}"
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if has(pid, mark)]

    def end(self) -> Any:
        """Wait for mpirun; return its exit code, and the seconds after the cut of the link."""
        try:
            self._process.wait(240)
        finally:
            self._process.kill()
        return json.loads((self._folder / "result.json").read_text())

    @property
    def output(self) -> str:
        """Return what mpirun and the ranks print."""
        return (self._folder / "output").read_text(errors="replace")


def has(pid: int, variable: str) -> bool:
    """Return True if a process has a variable with this value."""
    try:
        return variable.encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False  # it has ended


def by_mpirun(folder: pathlib.Path, with_table: bool, *command: str) -> Job:
    """Start two ranks on each host with mpirun, with a rank table or without one."""
    folder.mkdir()
    table = folder / "table.json"
    hosts = ",".join(f"{host}:2" for host in two_hosts.ADDRESSES)
    assert cli.main(["ranktable", "make", "--hosts", hosts, "-o", str(table)]) == 0
    mpirun = mpi_ranks.command(4)
    if "--oversubscribe" in mpirun:
        mpirun += ["--host", hosts, *(word for name in VARIABLES for word in ("-x", name))]
    else:  # MPICH, which exports all variables
        mpirun += ["-hosts", hosts]
    return Job(folder, *mpirun, sys.executable, *command, RANK_TABLE_FILE=str(table) if with_table else "")


def by_launch(folder: pathlib.Path, ranks_each: int, *command: str, form: str = "-H") -> Job:
    """Start as many ranks on each host with npu-shim launch, with hosts as horovodrun, Open MPI or MPICH names them."""
    folder.mkdir()
    named = {"-H": ",", "slots": "\n", "colon": "\n"}[form].join(
        f"{host} slots={ranks_each}" if form == "slots" else f"{host}:{ranks_each}" for host in two_hosts.ADDRESSES
    )
    if form != "-H":
        (folder / "hosts").write_text(named)
    hosts = ["-H", named] if form == "-H" else ["--hostfile", str(folder / "hosts")]
    launch = [sys.executable, "-m", "npu_shim", "launch", "-np", str(2 * ranks_each), *hosts]
    return Job(folder, *launch, "--log-dir", str(folder / "logs"), *command)


@pytest.mark.parametrize("start", ["mpirun", "mpirun alone", "-H", "slots", "colon"])
def test_ranks_of_two_hosts_train_as_one_process(start: str, tmp_path: pathlib.Path) -> None:
    ways = ["wrapper", "by_hand"] if start in ("mpirun", "-H") else ["by_hand"]
    alone = {**mpi_ranks.environment(), "NPU_SHIM_FALLBACK": "silent"}
    command = [str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways]
    subprocess.run([sys.executable, *command], env=alone, check=True)
    job = (
        by_mpirun(tmp_path / "job", start == "mpirun", *command)
        if start.startswith("mpirun")
        else by_launch(tmp_path / "job", 2, *command, form=start)
    )
    assert job.end()["code"] == 0, job.output[-4000:]
    check_training(tmp_path, ways)


@pytest.mark.parametrize("fault", ["kill", "daemon", "cut"])
def test_a_job_that_loses_a_host_ends_and_continues_from_its_checkpoint(fault: str, tmp_path: pathlib.Path) -> None:
    command = [
        str(SCRIPTS.parents[2] / "samples" / "digits_horovod" / "expected_npu.py"),
        "--steps=240",
        "--log_every=20",
        f"--model_dir={tmp_path / 'model'}",
    ]
    job = by_launch(tmp_path / "first", 1, *command)
    give_up = time.monotonic() + 150
    while not (tmp_path / "model" / "model.ckpt-100.index").exists():
        assert time.monotonic() < give_up, job.output[-4000:]
        time.sleep(0.01)
    begin = time.monotonic()
    if fault == "cut":
        job.cut()
    elif fault == "daemon":
        job.kill_daemon(1)
    else:
        job.kill(1)
    found = job.end()
    assert found["code"], job.output[-4000:]
    limit = begin + (60 if fault == "cut" else 20)
    assert time.monotonic() < limit
    while job.processes():  # those of the other host end by themselves
        assert time.monotonic() < limit, job.processes()
        time.sleep(0.1)
    if fault == "cut":
        name = r"rank [01] \(process \d+ on 10.77.0.[12]\) (does not answer|stopped in the middle of a collective)"
        assert re.search(name, job.output), job.output[-4000:]
    elif fault == "daemon":
        end = r"mpirun (failed with exit code \d+ after \d+ s|ended after \d+ s, but ranks 0, 1 did not finish)\. "
        assert re.search(rf"npu-shim launch: {end}Its log is \S+\n$", job.output), job.output[-4000:]
    else:
        assert job.output.count("rank 1 on 10.77.0.2 was ended by SIGKILL") == 1, job.output[-4000:]
    assert last_step(tmp_path / "model") < 240
    again = by_launch(tmp_path / "again", 1, *command)
    assert again.end()["code"] == 0, again.output[-4000:]
    assert last_step(tmp_path / "model") == 240


def test_error_of_a_rank_on_another_host_is_named_once(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom npu_shim.distributed import backend, world\n"
        "rank, group = world.world().rank, backend.connected_backend().world\n"
        "group.allreduce(np.ones(3), key='first')\n"
        "if rank == 3:\n    open('/no/such/data.csv')\n"
        "group.allreduce(np.ones(3), key='loss')\n"
    )
    job = by_launch(tmp_path / "job", 2, str(script))
    assert job.end()["code"] == 1, job.output
    assert re.findall(r"rank \d on \S+ failed", job.output) == ["rank 3 on 10.77.0.2 failed"], job.output
    assert "No such file or directory: '/no/such/data.csv'" in job.output
    give_up = time.monotonic() + 15
    while job.processes():  # those of the other host end by themselves
        assert time.monotonic() < give_up, job.processes()
        time.sleep(0.1)


def last_step(folder: pathlib.Path) -> int:
    """Return the global step of the last checkpoint."""
    return int(tf.train.load_checkpoint(str(folder)).get_tensor("global_step"))
