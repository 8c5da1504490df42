"""float64 that a run saw in a graph becomes float32 with all that it meets, and training agrees."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Callable

import numpy as np
import pytest

from tests.verify_command import VerifyCommand

Python = Callable[..., "subprocess.CompletedProcess[str]"]

TRAIN = """
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
if not tf.__version__.startswith("1."):
    tf1.disable_eager_execution()

x = tf1.placeholder(tf.float64, [4, 3])
w = tf1.get_variable("w", [3, 1], dtype="float64", initializer=tf1.zeros_initializer())
b = tf1.Variable(np.linspace(0, 1, 4))
y = tf.matmul(x, w) + tf.reshape(b, [4, 1]) * 2.0
loss = tf.reduce_mean((y - tf.constant(0.5, dtype=np.float64)) ** 2)
train = tf1.train.AdamOptimizer(0.1).minimize(loss)
mixed = tf.cast(tf.shape(x)[1], tf.float64) * (tf.shape(x)[0] / 2)
called = tf1.py_func(np.float64, [tf.cast(w[0, 0], tf.float32)], tf.float64) + tf.cast(tf.shape(x)[1], tf.float64)
with tf1.Session() as sess:
    sess.run(tf1.global_variables_initializer())
    for i in range(5):
        print("loss", sess.run([loss, train], {x: np.full([4, 3], 0.1 * i)})[0])
    sess.run([mixed, called], {x: np.zeros([4, 3])})
"""
NEW = """
x = tf1.placeholder(tf.float32, [4, 3])
w = tf1.get_variable("w", [3, 1], dtype="float32", initializer=tf1.zeros_initializer())
b = tf1.Variable(np.linspace(0, 1, 4), dtype=tf.float32)
y = tf.matmul(x, w) + tf.reshape(b, [4, 1]) * 2.0
loss = tf.reduce_mean((y - tf.constant(0.5, dtype=np.float32)) ** 2)
train = tf1.train.AdamOptimizer(0.1).minimize(loss)
mixed = tf.cast(tf.shape(x)[1], tf.float64) * (tf.shape(x)[0] / 2)
called = tf1.py_func(np.float64, [tf.cast(w[0, 0], tf.float32)], tf.float64) + tf.cast(tf.shape(x)[1], tf.float64)
"""


def losses(run: subprocess.CompletedProcess[str]) -> list[float]:
    assert run.returncode == 0, run.stdout[-3000:]
    return [float(line.split()[1]) for line in run.stdout.splitlines() if line.startswith("loss ")]


@pytest.mark.once_tf115
def test_doubles_that_meet_nothing_else_become_float32(
    python: Python, verify_command: VerifyCommand, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    expected = losses(python(tmp_path, "-m", "npu_shim", "observe", "train.py"))
    tool = str(repo_root / "tools" / "convert_tf2npu" / "main.py")
    python(tmp_path, tool, "-i", "train.py", "--facts", "facts.json", "-o", "out", "--select", "NPU221")
    assert NEW in (tmp_path / "out" / "train.py").read_text()
    np.testing.assert_allclose(losses(python(tmp_path / "out", "train.py")), expected, rtol=1e-5)
    assert len(expected) == 5
    verified = verify_command(tmp_path, "--facts", "facts.json", "--select", "NPU221", "train.py")
    assert verified.code == 0 and "The two scripts agree." in verified.output, verified.output[-3000:]
