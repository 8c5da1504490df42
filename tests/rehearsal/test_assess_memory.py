"""The memory that ``npu-shim assess`` expects is what TensorFlow allocates for the step on the CPU."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from samples import training

BAND = 0.25
# its networks do not depend on each other, and TensorFlow runs them in an order that needs less than the one assumed
WIDE = {"digits_gan": 0.5}
SESSIONS = ["digits_session", "digits_estimator", "digits_gan", "digits_horovod", "text_keras"]
FUNCTIONS = ["digits_fit", "digits_loop"]
SAMPLES = SESSIONS + ([] if tf.__version__.startswith("1.") else FUNCTIONS)


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
    assert abs(ours - theirs) <= WIDE.get(name, BAND) * theirs, (ours, theirs)
