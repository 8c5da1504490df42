"""Jobs of Slurm: samples/cluster/slurm.sh on a cluster of two node daemons on this machine."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import time
from typing import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tests.cluster.slurm import Slurm, command_line, of_job, processes
from tests.distributed.test_training import SCRIPTS, launched

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_SCRIPT = ROOT / "samples" / "cluster" / "slurm.sh"
CHECKPOINTED = [str(ROOT / "samples" / "digits_horovod" / "expected_npu.py"), "--log_every=20"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


class Job:
    """A submitted job, with its output and the folder of its checkpoints."""

    def __init__(
        self, slurm: Slurm, folder: pathlib.Path, *command: str, options: tuple[str, ...] = (), variables: str = ""
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._slurm, self.folder = slurm, folder
        variables += (
            f",PYTHON={sys.executable},PYTHONPATH={ROOT},NPU_SHIM_FALLBACK=silent,NPU_SHIM_COLLECTIVE_TIMEOUT=15"
        )
        self.number = slurm.submit(
            f"--export=ALL{variables}",
            f"--chdir={folder}",
            f"--output={folder}/output",
            *options,
            str(BATCH_SCRIPT),
            *command,
        )

    @property
    def output(self) -> str:
        path = self.folder / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self) -> str:
        """Wait for the end; return the state. No process of the job is left then."""
        state = self._slurm.end(self.number)
        self._slurm.wait(lambda: not of_job(self.number), 15, f"processes of job {self.number} are left")
        return state

    def wait_for_checkpoint(self, step: int) -> None:
        """Wait until a checkpoint of at least this step exists."""

        def exists() -> bool:
            assert self._slurm.state(self.number) in ("PENDING", "RUNNING"), self.output[-4000:]
            return last_step(self.folder) >= step

        self._slurm.wait(exists, 150, "no checkpoint")

    def rank(self, number: int) -> int:
        """Return the process of a rank."""
        marks = {f"SLURM_JOB_ID={self.number}".encode(), f"SLURM_PROCID={number}".encode()}
        found = [
            pid for pid, variables in processes() if marks <= set(variables) and b"expected_npu.py" in command_line(pid)
        ]
        assert found, self.output[-4000:]
        return found[0]


def last_step(folder: pathlib.Path) -> int:
    """Return the global step of the last checkpoint; -1 without one."""
    path = tf.train.latest_checkpoint(str(folder / "model"))
    return -1 if path is None else int(path.rpartition("-")[2])


def checkpointed(slurm: Slurm, folder: pathlib.Path, steps: int, *options: str) -> Job:
    """Submit a job that saves checkpoints every 100 steps."""
    return Job(
        slurm,
        folder,
        *CHECKPOINTED,
        f"--steps={steps}",
        f"--model_dir={folder}/model",
        options=("--ntasks-per-node=2", *options),
    )


def test_the_tasks_of_a_node_train_as_one_process(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    ways = ["wrapper", "by_hand"]
    launched(1, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways, folder=tmp_path)
    job = Job(slurm, tmp_path / "job", str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways)
    assert job.end() == "COMPLETED", job.output[-4000:]
    one = json.loads((tmp_path / "rank_0_of_1.json").read_text())
    for rank in range(4):
        ours = json.loads((tmp_path / f"rank_{rank}_of_4.json").read_text())
        for way in ways:
            np.testing.assert_allclose(ours[way]["losses"], one[way]["losses"], rtol=2e-5)
            for name, value in one[way]["values"].items():
                np.testing.assert_allclose(ours[way]["values"][name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_job_that_loses_a_rank_starts_again_from_its_checkpoint(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    job = checkpointed(slurm, tmp_path / "job", 4000)
    job.wait_for_checkpoint(100)
    os.kill(job.rank(1), signal.SIGKILL)
    assert job.end() == "COMPLETED", job.output[-4000:]
    assert "task 1: Killed" in job.output and "and starts again" in job.output, job.output[-4000:]
    assert last_step(job.folder) == 4000
    assert job.output.count("step 20 loss") == 1, job.output[-4000:]  # the second start did not begin anew


def test_a_job_that_loses_its_node_starts_again_on_another(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    job = checkpointed(slurm, tmp_path / "job", 4000)
    job.wait_for_checkpoint(100)
    node = slurm.run("squeue", "-h", "-o", "%N", "-j", str(job.number)).strip()
    slurm.kill_node(node, job.number)
    try:
        assert job.end() == "COMPLETED", job.output[-4000:]
    finally:
        slurm.start_node(node)
    assert last_step(job.folder) == 4000
    assert job.output.count("step 20 loss") == 1, job.output[-4000:]  # the second start did not begin anew


def test_a_cancelled_job_leaves_nothing_and_does_not_start_again(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    job = checkpointed(slurm, tmp_path / "job", 100000)
    job.wait_for_checkpoint(100)
    started = time.monotonic()
    slurm.run("scancel", str(job.number))
    assert job.end() == "CANCELLED", job.output[-4000:]
    assert time.monotonic() - started < 30
    assert "starts again" not in job.output


def test_a_job_over_its_time_ends(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    job = checkpointed(slurm, tmp_path / "job", 10000000, "--time=1")
    started = time.monotonic()
    assert job.end() == "TIMEOUT", job.output[-4000:]
    assert time.monotonic() - started < 180
    assert "starts again" not in job.output


def test_tasks_on_two_nodes_without_mpi_are_one_clear_error(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    job = Job(
        slurm,
        tmp_path / "job",
        *CHECKPOINTED,
        options=("--nodes=2", "--ntasks-per-node=1"),
        variables=",MAX_RESTARTS=0",
    )
    assert job.end() == "FAILED"
    assert "pip install 'npu_shim[mpi]'" in job.output
