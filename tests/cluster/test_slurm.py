"""Jobs of Slurm: samples/cluster/slurm.sh on a cluster of two node daemons on this machine."""

from __future__ import annotations

import os
import pathlib
import signal
import time

from tests.cluster.jobs import CHECKPOINTED, Job, checkpointed, last_step
from tests.cluster.slurm import Slurm
from tests.distributed.test_training import SCRIPTS, launched
from tests.distributed.trained import check_training


def test_the_tasks_of_a_node_train_as_one_process(slurm: Slurm, tmp_path: pathlib.Path) -> None:
    ways = ["wrapper", "by_hand"]
    launched(1, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways, folder=tmp_path)
    job = Job(slurm, tmp_path / "job", str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways)
    assert job.end() == "COMPLETED", job.output[-4000:]
    check_training(tmp_path, ways)


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
