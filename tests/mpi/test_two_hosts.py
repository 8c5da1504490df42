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

import numpy as np
import pytest
import tensorflow as tf

from tests.distributed import mpi_ranks
from tests.mpi import two_hosts

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "distributed" / "scripts"
UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
VARIABLES = (
    "PYTHONPATH",
    "RANK_TABLE_FILE",
    "NPU_SHIM_COLLECTIVE_TIMEOUT",
    "NPU_SHIM_FALLBACK",
    "TF_CPP_MIN_LOG_LEVEL",
)


class Job:
    """A script on two hosts with as many ranks on each."""

    def __init__(self, folder: pathlib.Path, ranks_each: int, *command: str) -> None:
        folder.mkdir()
        self._folder = folder
        table = folder / "table.json"
        servers = [
            {
                "server_id": host,
                "device": [
                    {"device_id": str(i), "device_ip": f"10.1.{k}.{i}", "rank_id": str(ranks_each * k + i)}
                    for i in range(ranks_each)
                ],
            }
            for k, host in enumerate(two_hosts.ADDRESSES)
        ]
        table.write_text(
            json.dumps({"version": "1.0", "status": "completed", "server_count": "2", "server_list": servers})
        )
        exported = [word for name in VARIABLES for word in ("-x", name)]
        hosts = ",".join(f"{host}:{ranks_each}" for host in two_hosts.ADDRESSES)
        mpirun = mpi_ranks.command(2 * ranks_each, "--host", hosts, *exported)
        with open(folder / "output", "wb") as stream:
            self._process = subprocess.Popen(
                [*UNSHARE, sys.executable, two_hosts.__file__, str(folder), *mpirun, sys.executable, *command],
                env={
                    **mpi_ranks.environment(),
                    "RANK_TABLE_FILE": str(table),
                    "NPU_SHIM_COLLECTIVE_TIMEOUT": "15",
                    "NPU_SHIM_FALLBACK": "silent",
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
        (pid,) = [pid for pid in self.processes() if has(pid, f"OMPI_COMM_WORLD_RANK={rank}")]
        os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Return the processes of the job on both hosts."""
        mark = f"RANK_TABLE_FILE={self._folder / 'table.json'}"
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if has(pid, mark)]

    def end(self) -> Any:
        """Wait for mpirun; return its exit code, and the seconds after the cut of the link."""
        self._process.wait(240)
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


def test_ranks_of_two_hosts_train_as_one_process(tmp_path: pathlib.Path) -> None:
    ways = ["wrapper", "by_hand"]
    alone = {**mpi_ranks.environment(), "NPU_SHIM_FALLBACK": "silent"}
    subprocess.run([sys.executable, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways], env=alone, check=True)
    job = Job(tmp_path / "job", 2, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways)
    assert job.end()["code"] == 0, job.output[-4000:]
    one, *four = [
        json.loads((tmp_path / f"rank_{rank}_of_{size}.json").read_text())
        for rank, size in [(0, 1), (0, 4), (1, 4), (2, 4), (3, 4)]
    ]
    for way in ways:
        for rank in four:
            assert rank[way] == four[0][way]
            np.testing.assert_allclose(rank[way]["losses"], one[way]["losses"], rtol=2e-5)
            for name, value in one[way]["values"].items():
                np.testing.assert_allclose(rank[way]["values"][name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("fault", ["kill"])
def test_a_job_that_loses_a_host_ends_and_continues_from_its_checkpoint(fault: str, tmp_path: pathlib.Path) -> None:
    command = [
        str(SCRIPTS.parents[2] / "samples" / "digits_horovod" / "expected_npu.py"),
        "--steps=240",
        "--log_every=20",
        f"--model_dir={tmp_path / 'model'}",
    ]
    job = Job(tmp_path / "first", 1, *command)
    give_up = time.monotonic() + 150
    while not (tmp_path / "model" / "model.ckpt-100.index").exists():
        assert time.monotonic() < give_up, job.output[-4000:]
        time.sleep(0.01)
    begin = time.monotonic()
    if fault == "cut":
        job.cut()
    else:
        job.kill(1)
    found = job.end()
    assert found["code"], job.output[-4000:]
    assert time.monotonic() - begin < (60 if fault == "cut" else 20)
    assert not job.processes()
    if fault == "cut":
        name = r"rank [01] \(process \d+ on 10.77.0.[12]\) (does not answer|stopped in the middle of a collective)"
        assert re.search(name, job.output), job.output[-4000:]
    else:
        assert "signal 9" in job.output, job.output[-4000:]
    assert last_step(tmp_path / "model") < 240
    again = Job(tmp_path / "again", 1, *command)
    assert again.end()["code"] == 0, again.output[-4000:]
    assert last_step(tmp_path / "model") == 240


def last_step(folder: pathlib.Path) -> int:
    """Return the global step of the last checkpoint."""
    return int(tf.train.load_checkpoint(str(folder)).get_tensor("global_step"))
