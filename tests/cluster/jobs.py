"""Jobs of samples/cluster/slurm.sh, with their output and checkpoints."""

from __future__ import annotations

import pathlib
import sys

import tensorflow as tf

from tests.cluster.slurm import Slurm, command_line, of_job, processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_SCRIPT = ROOT / "samples" / "cluster" / "slurm.sh"
CHECKPOINTED = [str(ROOT / "samples" / "digits_horovod" / "expected_npu.py"), "--log_every=20"]


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


def checkpointed(slurm: Slurm, folder: pathlib.Path, steps: int, *options: str, variables: str = "") -> Job:
    """Submit a job of two tasks on each node that saves checkpoints every 100 steps."""
    return Job(
        slurm,
        folder,
        *CHECKPOINTED,
        f"--steps={steps}",
        f"--model_dir={folder}/model",
        options=("--ntasks-per-node=2", *options),
        variables=variables,
    )
