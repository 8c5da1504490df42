"""``npu-shim verify`` of scripts that import a part of npu_shim before TensorFlow."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from samples import training

SCRIPT = """
IMPORT
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [8, 4])
w = v1.get_variable("w", initializer=np.ones([4, 1], "f4"))
train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w))))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(3):
        session.run(train, {x: np.ones([8, 4], "f4")})
"""


@pytest.mark.smoke
@pytest.mark.parametrize(
    "first, alias",
    [
        ("import npu_shim.horovod.tensorflow as hvd; hvd.init()", "0"),
        ("import horovod.tensorflow as hvd; hvd.init()", "1"),
        ("from npu_shim.npu_init import *", "0"),
    ],
)
def test_a_part_of_npu_shim_may_import_tensorflow(first: str, alias: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("IMPORT", first))
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "verify", "-r", "r", "train.py"],
        cwd=str(tmp_path),
        env={**training.environment(), "NPU_SHIM_ALIAS": alias},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "r" / "verify.json").read_text())
    assert found["original"]["steps"] == found["migrated"]["steps"] == 3
    assert {"loss", "gradient", "variable"} <= {stream["kind"] for stream in found["streams"]}
