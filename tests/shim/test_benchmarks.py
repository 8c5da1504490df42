"""The benchmarks of imports and training steps run, and what they compare comes to the same weights; no figure decides."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf

HAS_ESTIMATOR = hasattr(tf.compat.v1, "estimator")
HAS_KERAS_SESSIONS = hasattr(tf.compat.v1.keras.backend, "set_session")


def table(repo_root, name):
    """The rows that a benchmark prints, without their head."""
    done = subprocess.run(
        [sys.executable, str(repo_root / "benchmarks" / (name + ".py")), "--quick"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(row[0] == tf.__version__ for row in rows[2:])
    return rows[2:]


def test_imports_are_measured(repo_root):
    ((_, *cells),) = table(repo_root, "imports")
    assert [cell != "-" for cell in cells] == [False, False, True, False, False, True]


def test_steps_are_measured_with_npu_shim_and_without(repo_root):
    expected = (
        ["NPUEstimator"] * HAS_ESTIMATOR
        + ["install()", "npu_config_proto"]
        + ["set_keras_session_npu_config"] * HAS_KERAS_SESSIONS
    )
    assert [(row[1], row[2]) for row in table(repo_root, "steps")] == [
        (model, what) for model in ("mlp", "cnn") for what in expected
    ]


def test_recordings_are_measured(repo_root):
    kinds = ["session"] + ["fit", "loop"] * hasattr(tf.keras.utils, "set_random_seed")
    rows = table(repo_root, "recording")
    assert [row[1] for row in rows] == kinds and all(float(row[3]) > 0 for row in rows)


def test_differing_sides_are_reported(repo_root, monkeypatch):
    monkeypatch.syspath_prepend(str(repo_root))
    from benchmarks import turns

    with pytest.raises(AssertionError, match="ours: w"):
        turns.compare("ours", {"w": 1.0}, {"w": 1.5})
    with pytest.raises(AssertionError, match="has the weights"):
        turns.compare("ours", {"w": 1.0}, {})


def test_a_training_that_fails_in_its_thread_raises_here(repo_root, monkeypatch):
    monkeypatch.syspath_prepend(str(repo_root))
    from benchmarks import turns

    class Broken:
        def train(self, input_fn, hooks):
            raise KeyError("no such feature")

    with pytest.raises(KeyError, match="no such feature"):
        turns.EstimatorTraining(lambda folder: Broken(), lambda: None)(10)
