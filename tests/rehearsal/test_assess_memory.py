"""The memory that ``npu-shim assess`` expects is what TensorFlow allocates for the step on the CPU."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from samples import training
from tests.rehearsal.test_mutants import RUNNABLE

BAND = 0.25
SAMPLES = sorted({name for name, runs in RUNNABLE.items() if runs} | {"digits_gan", "digits_horovod"})


@pytest.mark.parametrize("name", SAMPLES)
def test_activations_are_those_that_tensorflow_allocates(name: str, repo_root: pathlib.Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            str(repo_root / "tests" / "rehearsal" / "measured.py"),
            str(repo_root / "samples" / name / "original.py"),
        ],
        env={**training.environment(), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    lines = [line.split() for line in done.stderr.splitlines() if line.startswith("PEAKS ")]
    assert len(lines) == 1, done.stderr[-3000:]
    ours, theirs = int(lines[0][1]), int(lines[0][2])
    assert abs(ours - theirs) <= BAND * theirs, (ours, theirs)
