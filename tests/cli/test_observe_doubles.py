"""float64 that a run saw in a graph becomes float32 with all that it meets, and training agrees."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Callable

import numpy as np
import pytest
import tensorflow as tf

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
EAGER = """
import numpy as np
import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_eager_execution()

labels = tf.convert_to_tensor(np.eye(4))
w = tf.Variable(np.linspace(0, 1, 4))
b = tf.constant(0.5, dtype=np.float64)
total = tf.Variable(0.0, dtype=tf.float64)
start = tf.constant(1600000000.5, dtype="float64")
known = tf.sqrt(np.float64(2.0)) * tf.constant(2.0, dtype=tf.double)
count = tf.cast(tf.constant(3), tf.double) + 1.0


@tf.function
def inside(v):
    return tf.cast(tf.cast(v, tf.double) * 2.0, tf.float32)


@tf.function
def outside(v):
    return tf.cast(v, tf.double)


def scaled(v):
    return v * 0.5


rows = tf.constant(0.0, dtype=tf.float64)
sums = tf.constant([0.0, 0.0], dtype=tf.float64)
assigned = tf.Variable(0.0, dtype=tf.float64)
rate = tf.constant(1.0, dtype=tf.float64)
size = tf.constant(1600.5, dtype=tf.float64) * 1000000.0
twice = tf.constant(4.0, dtype=tf.float64)
grown = tf.exp(tf.constant(1.5, dtype=tf.float64))
adam = tf.keras.optimizers.Adam(0.1)
for step in range(5):
    rows = rows + 1000.0
    sums = tf.add_n([sums, tf.ones_like(sums)])
    assigned.assign(1.0 + assigned)
    rate = scaled(rate)
    quarter = scaled(
        scaled(twice)
    )
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((w - b) ** 2)
    adam.apply_gradients([(tape.gradient(loss, w), w)])
    value = tf.cast(loss, tf.float32)
    total.assign_add(tf.cast(tf.constant(0.5), tf.double))
    print("loss", float(value), float(tf.reduce_sum(labels)), float(inside(value)), float(outside(step)), float(count))
"""
# TensorFlow 1.15 does not show the ops of eager code, and all keep their types.
NEW_EAGER = """
labels = tf.convert_to_tensor(np.eye(4), dtype=tf.float32)
w = tf.Variable(np.linspace(0, 1, 4), dtype=tf.float32)
b = tf.constant(0.5, dtype=np.float32)
total = tf.Variable(0.0, dtype=tf.float64)
start = tf.constant(1600000000.5, dtype="float64")
known = tf.sqrt(np.float64(2.0)) * tf.constant(2.0, dtype=tf.double)
count = tf.cast(tf.constant(3), tf.float32) + 1.0


@tf.function
def inside(v):
    return tf.cast(tf.cast(v, tf.float32) * 2.0, tf.float32)


@tf.function
def outside(v):
    return tf.cast(v, tf.double)


def scaled(v):
    return v * 0.5


rows = tf.constant(0.0, dtype=tf.float64)
sums = tf.constant([0.0, 0.0], dtype=tf.float64)
assigned = tf.Variable(0.0, dtype=tf.float64)
rate = tf.constant(1.0, dtype=tf.float64)
size = tf.constant(1600.5, dtype=tf.float64) * 1000000.0
twice = tf.constant(4.0, dtype=tf.float32)
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
    lines = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("loss ")]
    return [float(number) for line in lines for number in line]


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


@pytest.mark.once
def test_doubles_of_eager_code_become_float32(
    python: Python, verify_command: VerifyCommand, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "train.py").write_text(EAGER)
    expected = losses(python(tmp_path, "-m", "npu_shim", "observe", "train.py"))
    tool = str(repo_root / "tools" / "convert_tf2npu" / "main.py")
    options = ["--facts", "facts.json", "--select", "NPU221"]
    shown = python(tmp_path, tool, "-i", "train.py", "-o", "out", "-v", *options).stdout.splitlines()
    new = (tmp_path / "out" / "train.py").read_text()
    if tf.__version__.startswith("1."):
        assert new == EAGER
        return
    assert NEW_EAGER in new, shown
    for line, reason in [
        (11, "a value carried from step to step"),
        (12, "values that float32 cannot hold"),
        (13, "float64 of other calls, which it meets"),
        (24, "float64 of other calls, which it meets"),
        *((line, "a value carried from step to step") for line in (31, 32, 33, 34)),
        (35, "values that float32 cannot hold"),
        (37, "values that float32 cannot hold"),  # in a later step
    ]:
        assert any(text.startswith(f"train.py:{line}:") and text.endswith(f"(seen: {reason})") for text in shown), shown
    np.testing.assert_allclose(losses(python(tmp_path / "out", "train.py")), expected, rtol=1e-5)
    assert len(expected) == 25
    verified = verify_command(tmp_path, *options, "train.py")
    assert verified.code == 0 and "The two scripts agree." in verified.output, verified.output[-3000:]


STEPS = """
import sys
import tensorflow as tf

tf1 = tf.compat.v1
if not tf.__version__.startswith("1."):
    tf1.disable_eager_execution()

step = tf1.placeholder(tf.int64, [])
time = tf1.placeholder(tf.float64, [])
total = tf1.get_variable("total", [], tf.float64, initializer=tf1.zeros_initializer())
mean = tf1.get_variable("mean", [], tf.float64, initializer=tf1.zeros_initializer())
adds = [tf1.assign_add(total, 2.0), tf1.assign(mean, mean + 1.0)]
rate = tf.cast(step, tf.float64) * 0.5
hours = time / 3600.0
with tf1.Session() as sess:
    sess.run(tf1.global_variables_initializer())
    sess.run(adds)
    print("loss", *sess.run([rate, hours], {step: int(sys.argv[1]), time: float(sys.argv[2])}))
"""


@pytest.mark.once_tf115
def test_doubles_that_need_it_stay(python: Python, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tool = str(repo_root / "tools" / "convert_tf2npu" / "main.py")
    (tmp_path / "train.py").write_text(STEPS)
    for step, time, kept in [("3", "7200", 2), ("16777217", "1600000000.25", 4)]:
        python(tmp_path, "-m", "npu_shim", "observe", "train.py", step, time)
        python(tmp_path, tool, "-i", "train.py", "--facts", "facts.json", "-o", f"out{step}", "--select", "NPU221")
        assert (tmp_path / f"out{step}" / "train.py").read_text().count("float64") == kept
