"""``npu-shim doctor`` trains a step with this TensorFlow."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import tensorflow as tf

from samples import training

pytestmark = pytest.mark.once


def doctor(folder: pathlib.Path, **env: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "doctor", "--json"],
        cwd=str(folder),
        env={**training.environment(), **env},
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.returncode, json.loads(done.stdout)


def test_it_trains_here(tmp_path: pathlib.Path) -> None:
    code, found = doctor(tmp_path)
    assert (code, found["problems"], found["tensorflow"]["error"]) == (0, [], None)
    assert (found["tensorflow"]["tensorflow"], found["tensorflow"]["trained_on"]) == (tf.__version__, "cpu")
    assert found["tensorflow"]["estimator"] == hasattr(tf, "estimator")


@pytest.mark.nightly
def test_a_forbidden_cpu_is_reported(tmp_path: pathlib.Path) -> None:
    code, found = doctor(tmp_path, NPU_SHIM_FALLBACK="error")
    assert code == 1
    (problem,) = found["problems"]
    assert problem.startswith(
        f"training a step with TensorFlow {tf.__version__} failed: RuntimeError: There is no NPU here"
    )
