"""Predictions of whole scripts: how they give batches to a step, and how many steps they make in a call."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from npu_shim._tensorflow.tf_api import has_keras_sessions, tf
from samples import training

IS_2 = not tf.__version__.startswith("1.")
GRAPH_MODE = "import numpy as np\nimport tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
EAGER = "import numpy as np\nimport tensorflow as tf\n"
DATA = """
rows, labels = np.zeros([96, 20], np.float32), np.zeros([96], np.int32)
data = tf.data.Dataset.from_tensor_slices((rows, labels)).repeat().batch(12)
"""
MODEL = """
layers = tf.keras.layers
model = tf.keras.Sequential(
    [layers.Dense(32, input_shape=(20,)), layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(3)])
"""
COMPILE = 'model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True){})\n'
SESSION = """
features, targets = {}
logits = tf.matmul(tf.cast(features, tf.float32), tf.get_variable("kernel", [20, 3]))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(targets, tf.int32), logits=logits))
train = tf.train.AdamOptimizer().minimize(loss)
session = tf.Session()
session.run(tf.global_variables_initializer())
"""
QUEUE = """
tf.train.start_queue_runners(session, tf.train.Coordinator())
while True:
    session.run(train)
"""
CALLABLE = """
step = session.make_callable([train, loss], [features, targets])
for start in range(0, 96, 12):
    step(rows[start:start + 12], labels[start:start + 12])
"""
LOOP = """
kernel = tf.Variable(tf.zeros([20, 3]))

@tf.function
def train(iterator, steps):
    for _ in tf.range(steps):
        features, targets = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, tf.matmul(features, kernel))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))

train(iter(data), tf.constant(6))
"""
PLACEHOLDERS = "tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.int32, [None])"
SLICES = "tf.train.shuffle_batch(tf.train.slice_input_producer([rows, labels]), 12, 64, 24)"


def predict(folder: pathlib.Path, text: str) -> Any:
    """Return the prediction of the training step of a script, with what the command prints."""
    script = folder / "train.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "assess", "--predict", "--json", "-", str(script)],
        env=training.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    [prediction] = [graph["prediction"] for graph in json.loads(done.stdout)["graphs"] if graph["kind"] == "train"]
    return prediction


IN_GRAPH_MODE = {
    "a queue": DATA + SESSION.format(SLICES) + QUEUE,
    "a callable": DATA + SESSION.format(PLACEHOLDERS) + CALLABLE,
}
if has_keras_sessions():
    IN_GRAPH_MODE["fit with a dataset"] = DATA + MODEL + COMPILE.format("") + "model.fit(data, steps_per_epoch=8)\n"
    IN_GRAPH_MODE["fit with arrays"] = DATA + MODEL + COMPILE.format("") + "model.fit(rows, labels, batch_size=12)\n"


@pytest.mark.parametrize("text", IN_GRAPH_MODE.values(), ids=list(IN_GRAPH_MODE))
def test_the_batch_of_a_step_in_graph_mode_is_known(tmp_path: pathlib.Path, text: str) -> None:
    known = predict(tmp_path, GRAPH_MODE + text)
    assert known["memory"]["batch"] == 12 and known["memory"]["largest_batch"] > 12
    assert known["examples"]["value"] == pytest.approx(12 / known["step"]["value"])
    assert (known["unknown_branches"], known["unknown_loops"], known["unknown_sizes"]) == ([], [], 0)
    proposed = {row["option"] for row in known["proposals"]}
    assert "batch size" in proposed and not proposed & {"iterations_per_loop", "steps_per_execution"}


if IS_2:

    @pytest.mark.parametrize("option, steps", [("", 1), (", steps_per_execution=5", 5)], ids=["one", "five"])
    def test_steps_per_execution_of_keras_are_steps_of_a_call(tmp_path: pathlib.Path, option: str, steps: int) -> None:
        fit = "model.fit(data, steps_per_epoch=10)\n"
        known = predict(tmp_path, EAGER + DATA + MODEL + COMPILE.format(option) + fit)
        assert (known["steps_in_call"], known["memory"]["batch"]) == (steps, 12)
        assert known["host"] == pytest.approx(0.9e-3 / steps)
        assert ("steps_per_execution" in [row["option"] for row in known["proposals"]]) == (steps == 1)
        assert sum(op["count"] for op in known["ops"] if "MatMul" in op["type"]) == 5, "those of one step"

    def test_a_loop_of_steps_in_a_function_counts_once(tmp_path: pathlib.Path) -> None:
        known = predict(tmp_path, EAGER + DATA + LOOP)
        assert (known["steps_in_call"], known["memory"]["batch"]) == (6, 12)
        assert sum(op["count"] for op in known["ops"] if "MatMul" in op["type"]) == 2
