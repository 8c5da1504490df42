"""Observed runs of conditions, functions, sessions, models and steps: what the tool writes with their facts agrees."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Callable

from npu_shim._tensorflow import tf_api

Python = Callable[..., "subprocess.CompletedProcess[str]"]

DROPOUTS = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


class Net:
    def __init__(self, options):
        self.options = options

    def __call__(self, x, training):
        x = tf.layers.dropout(x, 0.4, training=self.options["noise"], seed=1)
        return tf.layers.dropout(x, 0.5, training=training, seed=2)


x = tf.placeholder(tf.float32, [8, 4])
training = tf.placeholder_with_default(False, [])
weights = tf.get_variable("weights", [4, 1], initializer=tf.ones_initializer())
loss = tf.reduce_mean((tf.matmul(Net({"noise": True})(x, training), weights) - 1.0) ** 2)
step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    random = np.random.RandomState(0)
    for _ in range(6):
        print(session.run([loss, step], {x: random.rand(8, 4), training: True})[0])
"""


def migrated(python: Python, folder: pathlib.Path, script: str, *arguments: str) -> str:
    """Observe a run of a script, and convert it with the facts. Return its new text, after verify agrees."""
    (folder / "train.py").write_text(script)
    main = pathlib.Path(__file__).resolve().parents[2] / "tools" / "convert_tf2npu" / "main.py"
    for command in (
        ("-m", "npu_shim", "observe", "-o", "facts.json", "train.py", *arguments),
        (str(main), "-i", "train.py", "-o", "out", "--facts", "facts.json"),
        ("-m", "npu_shim", "verify", "train.py", "out/train.py", *arguments),
    ):
        run = python(folder, *command)
        assert run.returncode == 0, run.stdout[-3000:]
    return (folder / "out" / "train.py").read_text()


if tf_api.has_keras_sessions():  # later ones have no tf.layers

    def test_conditions_of_dropout_take_the_form_that_ran(python: Python, tmp_path: pathlib.Path) -> None:
        new = migrated(python, tmp_path, DROPOUTS)
        assert 'x = npu_ops.dropout(x, 0.6, seed=1) if self.options["noise"] else x\n' in new
        assert "return tf.cond(training, lambda: npu_ops.dropout(x, 0.5, seed=2), lambda: x)\n" in new
