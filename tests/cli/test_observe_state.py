"""Observed runs of conditions, functions, sessions, models and steps: what the tool writes with their facts agrees."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Callable

import pytest

from npu_shim._tensorflow import tf_api
from tests.verify_command import VerifyCommand

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


PREDICTS = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def double(x):
    return tf.py_func(lambda value: value + value, [x], tf.float32)


x = tf.placeholder(tf.float32, [2, 4], name="x")
weights = tf.get_variable("weights", [4, 1], initializer=tf.ones_initializer())
y = tf.matmul(x, weights)
dataset = tf.data.Dataset.range(3).map(lambda i: double(tf.cast(i, tf.float32)))
value = tf.data.make_one_shot_iterator(dataset).get_next()
if "write" in sys.argv:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, "./model")
with tf.Session() as session:
    tf.train.Saver().restore(session, "./model")
    print(session.run([y, value], {x: np.ones([2, 4])}))
"""


ON_HOST = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [8, 4])
weights = tf.get_variable("weights", [4, 1], initializer=tf.ones_initializer())
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1], [0.5, 2.0]), 1.0)
targets = tf.py_func(lambda rows: np.tanh(rows), [tf.reduce_sum(x, 1, keepdims=True)], tf.float32)
loss = tf.reduce_mean(table.lookup(tf.constant([1])) * (tf.matmul(x, weights) - targets) ** 2)
step = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(6):
        print(session.run([loss, step], {x: np.random.rand(8, 4)})[0])
"""


LAYERS = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def net():
    x = tf.keras.Input([4])
    y = tf.keras.layers.Dropout(0.25)(x)
    y = tf.keras.layers.Dropout(0.5)(y, training=False)
    return tf.keras.Model(x, tf.keras.layers.Dense(1, kernel_initializer="ones")(y))


model = {"net": net}["net"]()
model.compile(loss="mse", optimizer=tf.keras.optimizers.SGD(0.05))
model.fit(np.random.RandomState(0).rand(16, 4), np.ones([16, 1]), batch_size=8, epochs=3, shuffle=False)
"""


STEPS = """
import sys
import numpy as np
import tensorflow as tf


class Head(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)


class Largest(tf.keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="largest")
        self.value = self.add_weight(name="value", shape=(), initializer="zeros")

    def update_state(self, loss):
        self.value.assign_add(tf.nn.relu(loss - self.value))

    def result(self):
        return tf.identity(self.value)


def error_of(y, predicted):
    return tf.reduce_mean(tf.square(y - predicted))


def main():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu")])
    if "dropout" in sys.argv:
        model.add(tf.keras.layers.Dropout(0.25))
    head = Head()
    optimizer = tf.keras.optimizers.Adam(0.01)
    mean, largest = tf.keras.metrics.MeanSquaredError("mean"), Largest()

    def step(x, y):
        with tf.GradientTape() as tape:
            predicted = head(model(x, training=True))
            loss = error_of(y, predicted)
        mean(y, predicted)
        largest.update_state(loss)
        variables = model.trainable_variables + head.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    random = np.random.RandomState(0)
    for _ in range(6):
        x = tf.constant(random.rand(8, 4), tf.float32)
        print(step(x, tf.ones([8, 1])).numpy(), largest.result().numpy())


main()
"""


RECURRENT = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
rnn_cell = tf.nn.rnn_cell
x = tf.placeholder(tf.float32, [4, 6, 3])
lengths = tf.placeholder(tf.int32, [4])
with tf.variable_scope("first"):
    cell = rnn_cell.BasicRNNCell(5)
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)  # both are used
with tf.variable_scope("second"):
    cells = rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(5), rnn_cell.GRUCell(4)])
    start = cells.zero_state(4, tf.float32)
    _, (_, last) = tf.nn.dynamic_rnn(cells, outputs, lengths, start, parallel_iterations=8)
with tf.variable_scope("third"):
    steps = tf.transpose(outputs, [1, 0, 2])
    timely = tf.nn.dynamic_rnn(rnn_cell.GRUCell(2), steps, time_major=True, dtype=tf.float32, swap_memory=True)[0]
with tf.variable_scope("fourth"):
    dropping = rnn_cell.DropoutWrapper(rnn_cell.GRUCell(2), output_keep_prob=tf.constant(0.5))
    noise, _ = tf.nn.dynamic_rnn(dropping, outputs, dtype=tf.float32)
    stacked = rnn_cell.MultiRNNCell([dropping])
    tf.nn.dynamic_rnn(stacked, outputs, dtype=tf.float32, scope="one")
    again, _ = tf.nn.dynamic_rnn(stacked, outputs, dtype=tf.float32, scope="other")  # ops in the scope of the first
with tf.variable_scope("fifth"):
    unknown = tf.placeholder_with_default(x, [4, None, 3])
    open_outputs, _ = tf.nn.dynamic_rnn(rnn_cell.GRUCell(2), unknown, dtype=tf.float32)
loss = tf.add_n([tf.reduce_mean(tf.square(one - 0.5)) for one in (outputs, state, last, timely, open_outputs)])
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    random = np.random.RandomState(0)
    for _ in range(4):
        fed = {x: random.rand(4, 6, 3), lengths: random.randint(1, 7, 4)}
        print(session.run([loss, train], fed)[0], session.run(noise, fed).shape)
"""


COUNTS = """
import sys
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
weights = tf.get_variable("weights", [4], initializer=tf.ones_initializer(), use_resource="resource" in sys.argv)
step = tf.train.get_or_create_global_step()
loss = tf.reduce_sum(weights)


def updated():
    gradients = tf.gradients(loss, [weights])
    if "own" in sys.argv:
        return tf.assign_sub(weights, 0.1 * gradients[0]).op
    return tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(gradients, [weights]))


if "skips" in sys.argv:
    update = tf.cond(loss > 3.7, lambda: tf.group(updated()), tf.no_op)
else:
    update = updated()
with tf.control_dependencies([update]):
    counted = tf.assign_add(step, 1)
read = tf.assign(step, step + 1)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    call = session.make_callable(counted if "callable" in sys.argv else weights)
    for _ in range(2):
        if "callable" not in sys.argv:
            print(session.run([loss, counted]))
        print(call())
    session.run(read)
"""


def migrated(python: Python, verify_command: VerifyCommand, folder: pathlib.Path, script: str, *arguments: str) -> str:
    """Observe a run of a script, and convert it with the facts. Return its new text, after verify agrees."""
    (folder / "train.py").write_text(script)
    main = pathlib.Path(__file__).resolve().parents[2] / "tools" / "convert_tf2npu" / "main.py"
    for command in (
        ("-m", "npu_shim", "observe", "-o", "facts.json", "train.py", *arguments),
        (str(main), "-i", "train.py", "-o", "out", "--facts", "facts.json", "-r", "r"),
    ):
        run = python(folder, *command)
        assert run.returncode == 0, run.stdout[-3000:]
    verified = verify_command(folder, "train.py", "out/train.py", "--", *arguments)
    assert verified.code == 0, verified.output[-3000:]
    return (folder / "out" / "train.py").read_text()


@pytest.mark.once_tf115
def test_sessions_that_predicted_are_configured_so(
    python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    new = migrated(python, verify_command, tmp_path, PREDICTS, "write")
    assert new.count("with tf.Session(config=npu_config_proto(graph_run_mode=0)) as session:") == 2
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert not [d for d in report["files"][0]["diagnostics"] if d["kind"] != "change"]


@pytest.mark.once_tf115
def test_sessions_with_operators_of_the_host_get_mixed_computing(
    python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    new = migrated(python, verify_command, tmp_path, ON_HOST)
    assert "with tf.Session(config=npu_config_proto(mix_compile_mode=True)) as session:" in new
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert {d["code"] for d in report["files"][0]["diagnostics"]} == {"NPU101"}


@pytest.mark.once_tf115
@pytest.mark.parametrize(
    "arguments, reported",
    [
        ("", []),
        ("own", []),
        ("resource", []),
        ("skips", ["counted", "read"]),
        ("skips own", ["counted", "read"]),
        ("skips resource", ["counted", "read"]),
        ("callable", []),
        ("callable skips", ["counted", "read"]),
    ],
)
def test_a_counter_is_reported_if_a_run_may_skip_an_update(
    python: Python, tmp_path: pathlib.Path, arguments: str, reported: list[str]
) -> None:
    (tmp_path / "train.py").write_text(COUNTS)
    main = pathlib.Path(__file__).resolve().parents[2] / "tools" / "convert_tf2npu" / "main.py"
    observe = ("-m", "npu_shim", "observe", "-o", "facts.json", "train.py")
    convert = (str(main), "-i", "train.py", "-o", "out", "--select", "NPU226", "-r", "r")
    for command in (*observe, *arguments.split()), (*convert, "--facts", "facts.json"):
        run = python(tmp_path, *command)
        assert run.returncode == 0, run.stdout[-3000:]
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    lines = [COUNTS.splitlines()[d["line"] - 1].split()[0] for d in report["files"][0]["diagnostics"]]
    assert lines == reported
    assert not python(tmp_path, *observe, "skips").returncode  # merged with the first run
    assert not python(tmp_path, *convert, "--facts", "facts.json", "--force").returncode
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert report["files"][0]["diagnostics"]


if not tf_api.tf.__version__.startswith("1."):

    @pytest.mark.parametrize("arguments", [(), ("dropout",)], ids=["plain", "dropout"])
    def test_steps_that_traced_are_functions(
        python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path, arguments: tuple[str, ...]
    ) -> None:
        new = migrated(python, verify_command, tmp_path, STEPS, *arguments)
        assert "    @tf.function\n    def step(x, y):\n" in new


if tf_api.has_keras_sessions():  # later ones have no tf.layers and no cells

    @pytest.mark.once_tf115
    def test_few_time_steps_are_unrolled(python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path) -> None:
        new = migrated(python, verify_command, tmp_path, RECURRENT)
        assert (
            "    outputs, state = npu_rnn.npu_dynamic_rnn(cell, tf.transpose(x, [1, 0, 2]), sequence_length=lengths, "
            "dtype=tf.float32)  # both are used\n    outputs = tf.transpose(outputs, [1, 0, 2])\n"
        ) in new
        assert (
            "    _, (_, last) = npu_rnn.npu_dynamic_rnn(cells, tf.transpose(outputs, [1, 0, 2]), sequence_length=lengths, "
            "initial_state=start)\nwith "
        ) in new
        assert "    timely = npu_rnn.npu_dynamic_rnn(rnn_cell.GRUCell(2), steps, dtype=tf.float32)[0]\n" in new
        assert "    noise, _ = tf.nn.dynamic_rnn(dropping, outputs, dtype=tf.float32)\n" in new
        assert "    again, _ = tf.nn.dynamic_rnn(stacked, outputs" in new
        assert "    open_outputs, _ = tf.nn.dynamic_rnn(rnn_cell.GRUCell(2), unknown, dtype=tf.float32)\n" in new

    @pytest.mark.once_tf115
    def test_conditions_of_dropout_take_the_form_that_ran(
        python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path
    ) -> None:
        new = migrated(python, verify_command, tmp_path, DROPOUTS)
        assert 'x = npu_ops.dropout(x, 0.6, seed=1) if self.options["noise"] else x\n' in new
        assert "return tf.layers.dropout(x, 0.5, training=training, seed=2)\n" in new
        assert "from npu_shim.estimator.npu import npu_convert_dropout\n" in new

    @pytest.mark.once_tf115
    def test_layers_that_dropped_in_graphs_use_the_operator(
        python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path
    ) -> None:
        new = migrated(python, verify_command, tmp_path, LAYERS)
        assert "from npu_shim.estimator.npu import npu_convert_dropout\n" in new
        assert "npu_keras_sess = set_keras_session_npu_config()\nmodel = " in new
