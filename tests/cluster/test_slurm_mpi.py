"""Jobs of Slurm on two node daemons: srun --mpi=pmix starts the ranks, and the wheel of Open MPI connects the nodes."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import warnings

import pytest

from tests.cluster.jobs import Job, checkpointed, last_step
from tests.cluster.slurm import Slurm
from tests.distributed.test_training import SCRIPTS, launched
from tests.distributed.trained import check_training

PMIX = ",SLURM_MPI_TYPE=pmix"


@pytest.fixture(scope="module")
def nodes(slurm: Slurm) -> int:
    """Return 2; 1 with a warning that has the reason, if this build of Slurm starts no MPI processes."""
    done = subprocess.run(
        ["srun", "--mpi=pmix", "--nodes=2", "--ntasks=2", "true"],
        env=slurm.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    if done.returncode:
        warnings.warn(f"srun --mpi=pmix starts no task, so the ranks are on one node and use no MPI: {done.stdout}")
        return 1
    return 2


def test_the_tasks_of_two_nodes_train_as_one_process(slurm: Slurm, nodes: int, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json, runpy, sys\nfrom npu_shim.distributed.world import world\n"
        "sys.argv.pop(0)\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
        "with open(f'{sys.argv[1]}/world_{world().rank}.json', 'w') as file:\n"
        "    json.dump([world().servers, 'mpi4py.MPI' in sys.modules], file)\n"
    )
    ways = ["wrapper", "by_hand"]
    command = [str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways]
    launched(1, *command, folder=tmp_path)
    job = Job(
        slurm,
        tmp_path / "job",
        str(script),
        *command,
        options=(f"--nodes={nodes}", f"--ntasks-per-node={4 // nodes}"),
        variables=PMIX,
    )
    assert job.end() == "COMPLETED", job.output[-4000:]
    check_training(tmp_path, ways)
    expected = [["n1", "n1", "n2", "n2"], True] if nodes == 2 else [["127.0.0.1"] * 4, False]
    assert [json.loads((tmp_path / f"world_{rank}.json").read_text()) for rank in range(4)] == [expected] * 4


def test_a_job_that_loses_a_rank_of_the_other_node_starts_again(
    slurm: Slurm, nodes: int, tmp_path: pathlib.Path
) -> None:
    job = checkpointed(slurm, tmp_path / "job", 1000, f"--nodes={nodes}", variables=PMIX)
    job.wait_for_checkpoint(100)
    os.kill(job.rank(2 * nodes - 1), signal.SIGKILL)
    assert job.end() == "COMPLETED", job.output[-4000:]
    assert f"task {2 * nodes - 1}: Killed" in job.output and "and starts again" in job.output, job.output[-4000:]
    assert last_step(job.folder) == 1000
    assert job.output.count("step 20 loss") == 1, job.output[-4000:]  # the second start did not begin anew
