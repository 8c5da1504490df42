"""The steps of ``npu-shim doctor --card-check`` compute the right values with this TensorFlow, here on the CPU."""

from __future__ import annotations

import pathlib
from typing import Any

import tensorflow as tf

from npu_shim.cli._diagnostics.card_steps import MARK, STEPS


def test_the_steps_run(tmp_path: pathlib.Path, python: Any) -> None:
    names = [name for name in STEPS if name not in ("load", "function", "estimator")]
    if hasattr(tf, "GradientTape") and tf.executing_eagerly():
        names.insert(0, "function")  # before the others switch to graph mode
    if hasattr(tf, "estimator"):
        names.append("estimator")
    done = python(tmp_path, "-m", "npu_shim.cli._diagnostics.card_steps", *names, NPU_SHIM_FALLBACK="silent")
    results = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    assert (done.returncode, len(results)) == (0, len(names)), done.stdout
