"""On a card a recording changes no graph: it has what the host sees anyway."""

from __future__ import annotations

import pathlib
from typing import Any

from conftest import FACE, FOLDER, HERE

from npu_shim.rehearsal.comparing.read_recording import read_recording
from npu_shim.rehearsal.recording.kinds import FEED, FETCH, FINAL, LOG, PRINT
from samples import training
from tests.distributed import forks
from tests.marks import in_forks, of_version_1
from tests.rehearsal.recorded_runs import HAS_GRAPH_KERAS

# Trains twice, before and after the hooks are installed, and prints if both graphs are equal.
SCRIPT = """
import re
import sys

folder, here, out, kind = sys.argv[1:]
sys.path[:0] = [folder, here]
import numpy as np
import tensorflow as tf

from npu_shim._host import host_device

host_device.DEVICE_FILES = folder + "/davinci[0-9]*"
from npu_shim.npu_init import NPUDistributedOptimizer, npu_config_proto, npu_ops, npu_unary_ops
from npu_shim.rehearsal.recording import hooks
from npu_shim.rehearsal.recording.settings import HookSettings
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Writer

v1 = tf.compat.v1
v1.disable_eager_execution()
X = np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4)


def session():
    x = v1.placeholder(tf.float32, [8, 4], "x")
    w = v1.get_variable("w", [4, 1], initializer=v1.random_normal_initializer())
    hidden = npu_unary_ops.gelu(tf.matmul(npu_ops.dropout(x, 0.9), w) + 0.1)
    loss = tf.reduce_mean(tf.square(hidden - 1.0), name="loss")
    train = NPUDistributedOptimizer(v1.train.MomentumOptimizer(0.1, 0.9)).minimize(loss)
    v1.add_to_collection("loss", v1.summary.scalar("loss", loss))
    saver = v1.train.Saver()
    with v1.Session(config=npu_config_proto()) as session:
        session.run(v1.global_variables_initializer())
        for number in range(3):
            session.run([train, loss], {x: X})
        if kind == "saved":
            saver.save(session, out + "/model")
        runs.append("closes")


def keras():
    net = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(4,), name="dense")], name="net")
    optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)  # those that graphs can have
    net.compile(optimizers.SGD(0.1), "mse")
    net.fit(X, X[:, :1], batch_size=4, epochs=2, shuffle=False, verbose=0)


def nodes(graph):
    # Keras asks for variables of a set, in any order
    return [re.sub(r"CustomGradient-\\d+", "", str(node)) for node in graph.node if node.op != "VarIsInitializedOp"]


runs = []
plain_run = v1.Session._do_run if hasattr(v1.Session, "_do_run") else None


def do_run(self, handle, targets, fetches, *rest):
    runs.append(sorted(map(str, list(targets) + list(fetches))))
    return plain_run(self, handle, targets, fetches, *rest)


v1.Session._do_run = do_run
graphs = []


def train():
    runs.clear()
    with tf.Graph().as_default() as graph:
        if kind == "keras":
            v1.keras.backend.set_session(v1.Session(graph=graph))
        (keras if kind == "keras" else session)()
        graphs.append((graph.as_graph_def(), list(runs)))


train()
recorder = Recorder(Writer(out))
hooks.install_recording_hooks(recorder, HookSettings(1, records_initial=True))
train()
print("steps", recorder.steps)
(one, before), (other, after) = graphs
print("graphs equal", nodes(one) == nodes(other), len(nodes(one)) > 20)
print("runs", len(after) - len(before), after[: len(before)] == before)
sys.stdout.flush()
recorder.writer.write_event("end", ended="returned")
import os

os._exit(0)  # sessions of Keras close without another run
"""

# The same with a tf.function, in which a Keras layer and a module make their variables.
EAGER = (
    SCRIPT[: SCRIPT.index("from npu_shim.npu_init")]
    + SCRIPT[SCRIPT.index("from npu_shim.rehearsal.recording import hooks") : SCRIPT.index("v1 = ")]
    + """
try:
    import tensorboard
except ImportError:  # the environment of Keras 3 has none, which summaries need
    tf.summary.scalar = lambda name, data, step: None
X = tf.constant(np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4))


class Module(tf.Module):
    w = None

    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.ones([2, 1]), name="w")
        return tf.matmul(x, self.w)


def train():
    layer, module = tf.keras.layers.Dense(2, name="dense"), Module()
    optimizer = tf.keras.optimizers.SGD(0.0, name="SGD")  # Keras numbers those without a name

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(module(layer(x)) - 1.0))
        tf.summary.scalar("loss", loss, step=0)
        variables = [layer.kernel, layer.bias, module.w]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    with tf.summary.create_file_writer(out).as_default():
        for number in range(3):
            step(X)
    nodes = step.get_concrete_function(X).graph.as_graph_def().node
    graphs.append([re.sub(r"CustomGradient-\\d+", "", str(node)) for node in nodes])
    return float(tf.reduce_sum(layer.kernel)), float(tf.reduce_sum(module.w))


graphs = []
train()
recorder = Recorder(Writer(out))
given = [("net/kernel", np.full([4, 2], 3.0, "f4")), ("w", np.full([2, 1], 5.0, "f4"))]
hooks.install_recording_hooks(recorder, HookSettings(1, records_initial=True, given=given))
begun = train()
print("steps", recorder.steps, "begun with", begun)
print("graphs equal", graphs[0] == graphs[1], len(graphs[0]) > 20)
recorder.writer.write_event("end", ended="returned")
"""
)


def recorded(folder: pathlib.Path, kind: str) -> tuple[str, Any]:
    """Return the output of the script, and its recording."""
    (folder / "train.py").write_text(EAGER if kind == "function" else SCRIPT)
    environ = {**training.environment(), "NPU_SHIM_FALLBACK": "error"}
    script, log = folder / "train.py", folder / "output"
    said = forks.run_script(script, FOLDER, HERE, str(folder), kind, log=log, environ=environ, cwd=folder)
    return said, read_recording(str(folder))


@in_forks
def test_a_session_runs_what_it_runs_without_a_recording(tmp_path: pathlib.Path) -> None:
    output, found = recorded(tmp_path, "saved")
    assert "graphs equal True True" in output and "steps 3" in output, output
    assert "runs 0 True" in output  # the variables at the end are those of the checkpoint
    kinds = {kind for kind, _ in found.streams}
    assert {FEED, FETCH, FINAL} <= kinds <= {FEED, FETCH, FINAL, PRINT}
    assert [value.step for value in found.streams[FETCH, "loss"].values] == [1, 2, 3]
    assert found.notes.on_device and len(found.streams[FINAL, "w"].values) == 1


if HAS_GRAPH_KERAS:

    @of_version_1
    def test_keras_counts_batches_without_an_op(tmp_path: pathlib.Path) -> None:
        output, found = recorded(tmp_path, "keras")
        assert "graphs equal True True" in output and "steps 4" in output and "runs 0 " in output, output
        assert (LOG, "batch loss") in found.streams and {kind for kind, _ in found.streams} <= {LOG, FETCH, PRINT}


if FACE == "npu_device":

    @in_forks
    def test_a_function_runs_what_it_runs_without_a_recording(tmp_path: pathlib.Path) -> None:
        output, found = recorded(tmp_path, "function")
        assert "graphs equal True True" in output, output
        assert "steps 3 begun with (24.0, 10.0)" in output, output
        assert {kind for kind, _ in found.streams} <= {PRINT}
