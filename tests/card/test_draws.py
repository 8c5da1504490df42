"""On a card, a run with a dump gets the random numbers of a recording from the host."""

from __future__ import annotations

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from conftest import FACE, FOLDER, HERE

from npu_shim.rehearsal.comparing.read_recording import read_recording
from npu_shim.rehearsal.recording.kinds import DRAW, FETCH
from samples import training
from tests.distributed import forks
from tests.marks import in_forks, of_version_1

IS_KERAS3 = hasattr(tf.keras.optimizers.SGD, "apply")  # which has no sessions, and seeds of its own
OF_SESSIONS = ["loops", pytest.param("frames", marks=pytest.mark.nightly)]
OF_FUNCTIONS = ["functions", "generator"]
if not IS_KERAS3:
    OF_SESSIONS.append("recurrent")
    OF_FUNCTIONS.append("fit")
# Runs a script that trains with dropout: on the CPU with a recording's seeds, or as on a card.
RUN = """
import sys
folder, here, out, where, kind = sys.argv[1:]
sys.path[:0] = [folder, here]
import os
import numpy as np
import tensorflow as tf
from npu_shim._host import host_device
if where != "cpu":
    host_device.DEVICE_FILES = folder + "/davinci[0-9]*"
else:
    host_device.DEVICE_FILES = ""
from npu_shim.rehearsal.recording import hooks, random_seeds
from npu_shim.rehearsal.recording.settings import HookSettings
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Writer
recorder = Recorder(Writer(out))
recorder.of_ranks = True
random_seeds.seed_python(1, recorder.record_seed)  # from which Keras draws seeds
recorder.writer.write_event("start", command=["train.py"])
if where == "draws":
    from npu_shim.dumps.draws import SharedDraws
    draws = SharedDraws(recorder, out)
    draws.start(1)
hooks.install_recording_hooks(recorder, HookSettings(1, records_initial=True))
"""
DATA = """
v1 = tf.compat.v1
X = np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4)
"""
SESSION = """
v1.disable_eager_execution()
from npu_shim.npu_init import npu_ops


def model(x):
    hidden = npu_ops.dropout(x, 0.6)
    hidden = tf.compat.v1.nn.dropout(hidden, rate=0.3)
    kept = tf.cond(tf.reduce_sum(x) < 1e3, lambda: v1.nn.dropout(hidden, rate=0.2), lambda: hidden)
    return kept + tf.random.normal([8, 4], stddev=0.1) * tf.random.stateless_uniform([8, 4], [1, 2])


x = v1.placeholder(tf.float32, [8, 4], "x")
w = v1.get_variable("w", [4, 1], initializer=v1.random_normal_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(model(x), w) - 1.0), name="loss")
alone = tf.random.uniform([3])
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for number in range(4):
        session.run([train, loss], {x: X})
        if number == 1:
            session.run(loss, {x: X})  # draws, too
    made = session.make_callable(alone)
    np.savetxt(os.path.join(out, "losses"), [made() for _ in range(3)])
"""
FUNCTION = """
w = tf.Variable(tf.ones([4, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)


@tf.function
def train():
    with tf.GradientTape() as tape:
        hidden = tf.nn.dropout(tf.constant(X), 0.4) + tf.random.stateless_normal([8, 4], [1, 2])
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w) - 1.0))
    optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    return loss


with open(os.path.join(out, "losses"), "w") as file:
    for number in range(4):
        file.write(f"{float(train())}\\n")
"""
SIZES = """
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [None, 4], "x")
hidden = v1.nn.dropout(v1.nn.dropout(x, rate=0.3) * 2, noise_shape=[tf.shape(x)[0], 1], rate=0.4)
w = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w) + tf.random.normal([tf.shape(hidden)[0], 1]) - 1.0), name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for rows in (8, 8, 5, 8):
        session.run([train, loss], {x: X[:rows]})
"""
EAGER = """
w = tf.Variable(tf.ones([4, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)
with open(os.path.join(out, "losses"), "w") as file:
    for number in range(4):
        with tf.GradientTape() as tape:
            hidden = tf.nn.dropout(tf.constant(X), 0.4) + tf.random.normal([8, 4], stddev=0.1)
            loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w) - 1.0))
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        file.write(f"{float(loss)}\\n")
"""
LOOPS = """
v1.disable_eager_execution()
v1.enable_control_flow_v2()
x, training = v1.placeholder(tf.float32, [8, 4], "x"), v1.placeholder(tf.bool, [], "training")
times = v1.placeholder(tf.int32, [], "times")


def body(n, y):
    y = v1.nn.dropout(y + x, rate=0.2)
    return n + 1, tf.cond(n % 2 > 0, lambda: y + tf.random.normal([8, 4], stddev=0.1), lambda: y)


_, looped = tf.while_loop(lambda n, y: n < times, body, [0, tf.ones([8, 4])])
kept = tf.cond(training, lambda: v1.nn.dropout(looped, rate=0.4), lambda: looped)
w = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(kept, w) - 1.0), name="loss")
train = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for number in (3, 5, 3, 0, 20):
        session.run([train, loss], {x: X, training: True, times: number})
        session.run(loss, {x: X, training: False, times: 1})
"""
FRAMES = LOOPS.replace("enable_control", "disable_control")
RECURRENT = """
v1.disable_eager_execution()
v1.disable_control_flow_v2()
x = v1.placeholder(tf.float32, [None, None, 4], "x")
cell = v1.nn.rnn_cell.LSTMCell(6)
cell = v1.nn.rnn_cell.DropoutWrapper(cell, 0.8, 0.7, 0.6, input_size=4, dtype=tf.float32)
outputs, _ = v1.nn.dynamic_rnn(cell, x, sequence_length=tf.fill([tf.shape(x)[0]], tf.shape(x)[1]), dtype=tf.float32)
loss = tf.reduce_mean(tf.square(outputs - 1.0), name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for rows, times in ((4, 2), (4, 5), (2, 3), (4, 2)):
        session.run([train, loss], {x: np.ones([rows, times, 4])})
"""
KERAS = """
v1.disable_v2_behavior()
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Dropout(0.5), layers.LSTM(6, dropout=0.2, recurrent_dropout=0.3), layers.Dense(1)])
model.compile("sgd", "mse")
data = np.random.RandomState(3).rand(10, 5, 4).astype("f4")
losses = []
noted = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: losses.append(float(logs["loss"])))
model.fit(data, np.ones([10, 1], "f4"), batch_size=4, epochs=2, shuffle=False, verbose=0, callbacks=[noted])
model.evaluate(data, np.ones([10, 1], "f4"), verbose=0)
model.fit(data, np.ones([10, 1], "f4"), batch_size=4, shuffle=False, verbose=0, callbacks=[noted])
np.savetxt(os.path.join(out, "losses"), losses)
"""
FUNCTIONS = """
w = tf.Variable(tf.ones([4, 1]))
optimizer = tf.keras.optimizers.SGD(0.01)


def step(x):
    with tf.GradientTape() as tape:
        hidden = tf.nn.dropout(x, 0.4) + tf.random.normal(tf.shape(x), stddev=0.1)
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w) - 1.0))
    optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
    return loss


sizes = tf.function(step, input_signature=[tf.TensorSpec([None, 4])])
traced = tf.function(step).get_concrete_function(tf.TensorSpec([8, 4]))


@tf.function
def loop(times):
    loss = 0.0
    for number in tf.range(times):
        loss += step(tf.constant(X))
        if number % 2 > 0:
            loss += tf.random.uniform([])
    return loss


losses = [traced(tf.constant(X)) for _ in range(3)] + [loop(tf.constant(times)) for times in (3, 0, 4, 17)]
losses += [sizes(tf.constant(X[:rows])) for rows in (8, 5, 5, 8)]
np.savetxt(os.path.join(out, "losses"), [float(each) for each in losses])
"""
FIT = """
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Dropout(0.4), layers.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
losses = []
noted = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: losses.append(float(logs["loss"])))
model.fit(X, np.ones([8, 1], "f4"), batch_size=4, epochs=2, shuffle=False, verbose=0, callbacks=[noted])
np.savetxt(os.path.join(out, "losses"), losses)
"""
GENERATOR = """
generator, losses = tf.random.Generator.from_seed(4), []
for _ in range(4):
    losses.append(float(tf.reduce_sum(generator.normal([8, 4]) + generator.uniform([8, 4]))))
np.savetxt(os.path.join(out, "losses"), losses)
"""
VECTORIZED = """
mapped = tf.function(lambda x: tf.vectorized_map(lambda row: row + tf.random.uniform([4]), x))
np.savetxt(os.path.join(out, "losses"), mapped(tf.zeros([3, 4])))
"""
LEFT = """
v1.disable_eager_execution()
x = v1.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(X).batch(8).repeat()).get_next()
w = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
size = v1.placeholder(tf.int32, [], "size")
sized = tf.random.uniform([size])
many = tf.while_loop(lambda n, y: n < 2000, lambda n, y: (n + 1, y + tf.random.uniform([])), [0, 0.0])[1]
loss = tf.reduce_mean(tf.square(tf.matmul(v1.nn.dropout(x, rate=0.5), w)) + many, name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    session.run([train, loss])
    assert len(set(session.run(sized, {size: 5}))) == 5
    many = [session.run(many) for _ in range(3)]
np.savetxt(os.path.join(out, "losses"), many)
"""
END = """
recorder.writer.write_event("end", ended="returned")
if where == "draws":
    draws.close()
"""
SCRIPTS = {"session": SESSION, "sizes": SIZES, "function": FUNCTION, "eager": EAGER, "loops": LOOPS, "frames": FRAMES}
SCRIPTS.update(
    recurrent=RECURRENT,
    keras=KERAS,
    functions=FUNCTIONS,
    fit=FIT,
    generator=GENERATOR,
    vectorized=VECTORIZED,
    left=LEFT,
)


def run(folder: pathlib.Path, where: str, kind: str) -> pathlib.Path:
    """Run a script. Return the folder of its recording."""
    out = folder / where
    out.mkdir()
    (folder / "train.py").write_text(RUN + DATA + SCRIPTS[kind] + END)
    environment = {**training.environment(), "NPU_SHIM_FALLBACK": "silent", "NPU_SHIM_KERNELS": "plain"}
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.dirname(HERE)), environment["PYTHONPATH"]])
    script, log = folder / "train.py", out / "output"
    forks.run_script(script, FOLDER, HERE, str(out), where, kind, log=log, environ=environment, cwd=folder)
    return out


def losses(folder: pathlib.Path) -> np.ndarray:
    """Return the losses of the steps."""
    return np.array([value.digest for value in read_recording(str(folder)).streams[FETCH, "loss"].values])


def drawn(folder: pathlib.Path) -> list[tuple[int, bytes]]:
    """Return the step and the first numbers of each draw."""
    return [
        (value.step, value.digest.tobytes())
        for each in read_recording(str(folder)).streams_of_kind(DRAW)
        for value in each.values
    ]


@of_version_1
def test_a_session_gets_the_numbers_of_the_recording(tmp_path: pathlib.Path) -> None:
    cpu, shared = (run(tmp_path, where, "session") for where in ("cpu", "draws"))
    np.testing.assert_allclose(losses(shared), losses(cpu), rtol=1e-6)
    assert set(drawn(cpu)) <= set(drawn(shared)) and len(drawn(cpu)) >= 12
    about = json.loads((shared / "draws.json").read_text())
    assert len(about["shared"]) == 6 and not about["left"]
    ours, theirs = (np.loadtxt(folder / "losses") for folder in (shared, cpu))
    np.testing.assert_array_equal(ours, theirs)
    assert "another graph for this run: 6 random ops get their numbers from the host" in (shared / "output").read_text()


@of_version_1
def test_the_sizes_of_a_session_follow_from_what_it_is_fed(tmp_path: pathlib.Path) -> None:
    cpu, shared = (run(tmp_path, where, "sizes") for where in ("cpu", "draws"))
    np.testing.assert_allclose(losses(shared), losses(cpu), rtol=1e-6)
    assert len({row.tobytes() for row in losses(cpu)}) == 4 and set(drawn(cpu)) <= set(drawn(shared))
    about = json.loads((shared / "draws.json").read_text())
    assert len(about["shared"]) == 3 and not about["left"]


@of_version_1
@pytest.mark.parametrize("kind", OF_SESSIONS)
def test_ops_in_loops_and_branches_get_the_numbers_of_the_recording(kind: str, tmp_path: pathlib.Path) -> None:
    cpu, shared = (run(tmp_path, where, kind) for where in ("cpu", "draws"))
    np.testing.assert_allclose(losses(shared), losses(cpu), rtol=1e-6)
    assert len(np.unique(losses(cpu))) >= 4
    about = json.loads((shared / "draws.json").read_text())
    assert len(about["shared"]) == 3 and not about["left"]


if not IS_KERAS3:

    @of_version_1
    def test_keras_gets_the_numbers_of_the_recording_at_each_step(tmp_path: pathlib.Path) -> None:
        ours, theirs = (np.loadtxt(run(tmp_path, where, "keras") / "losses") for where in ("draws", "cpu"))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
        assert len(theirs) == 9 and len(set(theirs)) == 9
        assert not json.loads((tmp_path / "draws" / "draws.json").read_text())["left"]


@of_version_1
def test_an_op_of_unknown_shape_or_that_runs_too_often_is_named(tmp_path: pathlib.Path) -> None:
    cpu, shared = (run(tmp_path, where, "left") for where in ("cpu", "draws"))
    about = json.loads((shared / "draws.json").read_text())
    assert not about["shared"]
    assert [each["why"] for each in about["left"]] == [
        "its shape or seed is known at run time only",
        "in a run, its loop took more numbers than the host gave",
        "its sizes do not follow from the shapes of what is fed",
    ]
    ours, theirs = (np.loadtxt(folder / "losses") for folder in (shared, cpu))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)  # after that run it gets enough
    shown = (shared / "output").read_text()
    assert "3 random ops draw their own numbers, which are not those of the recording: " in shown
    assert "known at run time only; " in shown


if FACE == "npu_device":

    @in_forks
    def test_eager_code_draws_on_the_host(tmp_path: pathlib.Path) -> None:
        cpu, shared = (run(tmp_path, where, "eager") for where in ("cpu", "draws"))
        ours, theirs = (np.loadtxt(folder / "losses") for folder in (shared, cpu))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert len(set(theirs)) == 4
        shown = (shared / "output").read_text()
        assert "the host draws for eager code: RandomStandardNormal, RandomUniform" in shown
        assert "another graph for this run" not in shown

    @in_forks
    def test_a_function_gets_the_numbers_of_the_recording(tmp_path: pathlib.Path) -> None:
        cpu, shared = (run(tmp_path, where, "function") for where in ("cpu", "draws"))
        ours, theirs = (np.loadtxt(folder / "losses") for folder in (shared, cpu))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
        assert len(set(theirs)) == 4
        assert set(drawn(cpu)) <= set(drawn(shared)) and len(drawn(cpu)) >= 8

    @in_forks
    @pytest.mark.parametrize("kind", OF_FUNCTIONS)
    def test_functions_and_generators_give_the_numbers_of_the_recording(kind: str, tmp_path: pathlib.Path) -> None:
        ours, theirs = (np.loadtxt(run(tmp_path, where, kind) / "losses") for where in ("draws", "cpu"))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
        assert len(set(theirs)) == len(theirs)
        assert not json.loads((tmp_path / "draws" / "draws.json").read_text())["left"]

    @in_forks
    def test_an_op_that_stands_for_many_runs_is_named(tmp_path: pathlib.Path) -> None:
        out = run(tmp_path, "draws", "vectorized")
        assert len(np.unique(np.loadtxt(out / "losses"))) == 12
        about = json.loads((out / "draws.json").read_text())
        assert [each["why"] for each in about["left"]] == ["it is in tf.vectorized_map"] and not about["shared"]
