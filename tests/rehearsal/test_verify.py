"""The command verify on scripts with planted defects: eager loops, and the elements of the first departure."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
import tensorflow as tf

from samples import training
from tests.rehearsal.conftest import Verify
from tests.rehearsal.mutants import MUTANTS
from tests.verify_command import VerifyCommand

EAGER = """
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
layers = tf.keras.layers
inputs = layers.Input([6, 16])
hidden = layers.MultiHeadAttention(2, 8, name="attention")(inputs, inputs)
net = tf.keras.Model(inputs, layers.Dense(3)(layers.Flatten()(hidden)), name="net")
optimizer = tf.keras.optimizers.Adam(1e-2)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
random = np.random.RandomState(0)
mean_loss = tf.keras.metrics.Mean("mean_loss")
accuracy = tf.keras.metrics.SparseCategoricalAccuracy("accuracy")


def step(x, y):
    with tf.GradientTape() as tape:
        outputs = net(x, training=True)
        loss = loss_of(y, outputs)
    accuracy(y, outputs)
    variables = net.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(list(zip(gradients, variables)))
    mean_loss.update_state(loss)
    mean_loss.result()


for number in range(6):
    x, y = random.randn(8, 6, 16).astype("f4"), random.randint(0, 3, 8)
    step(tf.constant(x), tf.constant(y))
"""


KERAS_STEP = """
import numpy as np
import tensorflow as tf

seen = tf.keras.metrics.Mean("seen")


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        seen.update_state(x)
        return {**super().train_step(data), "seen": seen.result()}


with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    net = Net()
    net.compile("sgd", "mse")
random = np.random.RandomState(0)
net.fit(random.rand(16, 4), random.rand(16, 1), batch_size=4, verbose=0)
print(float(seen.result()))
"""


CHAOS = """
import tensorflow as tf

w = tf.Variable([[0.1], [0.2], [0.3], [0.4]])
optimizer = tf.keras.optimizers.SGD(1.0)
for number in range(40):
    with tf.GradientTape() as tape:
        y = tf.matmul(tf.eye(4), w)
        net = y
        loss = tf.reduce_sum(tf.stop_gradient(net - (3.99 * y * (1 - y))) * y)
    gradient = tape.gradient(loss, w)
    optimizer.apply_gradients([(gradient, w)])
"""


OWN_FIT = """
import numpy as np
import tensorflow as tf


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.out = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.out(x)

    def fit(self, batches, optimizer):
        for x in batches:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(x) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))


Net().fit(np.ones([4, 8, 3], "f4"), tf.keras.optimizers.SGD(0.1))
"""


STRATEGY = """
import numpy as np
import tensorflow as tf
import npu_shim.npu_device as npu

npu.open().as_default()
npu.distribute.share_random_state()
strategy = npu.distribute.NPUStrategy()
x = np.random.RandomState(1).randn(24, 3).astype("f4")
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).shuffle(24).batch(8, drop_remainder=True)
with strategy.scope():
    net = tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.01)


def replica(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((net(x) - y) ** 2) / 8
    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))


@tf.function
def step(x, y):
    strategy.run(replica, args=(x, y))


for batch in strategy.experimental_distribute_dataset(data):
    step(*batch)
"""


NOISY = """
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_v2_behavior()
x = v1.placeholder(tf.float32, [32, 20])
kept = v1.nn.dropout(x, keep_prob=0.3)
weight = v1.get_variable("weight", [20, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(kept, weight) - tf.reduce_sum(x, axis=1, keepdims=True)))
train_op = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
with v1.Session() as sess:
    sess.run(v1.global_variables_initializer())
    for _ in range(40):
        sess.run([train_op, loss], {x: np.random.rand(32, 20)})
"""


QUEUES = """
import tempfile
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_v2_behavior()
random = np.random.RandomState(1)
x, y = random.randn(100, 4).astype("f4"), random.randn(100).astype("f4")
parts = [v1.train.slice_input_producer([x, y], num_epochs=2) for _ in range(3)]
a, b = v1.train.shuffle_batch_join(parts, 16, capacity=100, min_after_dequeue=40)
a, b = v1.train.batch([a + v1.random_uniform([4]), b], 16, num_threads=4, enqueue_many=True)
other = v1.train.shuffle_batch([v1.train.slice_input_producer([x])[0]], 16, 100, 40, num_threads=3)
other_loss = tf.reduce_mean(tf.square(tf.matmul(other, v1.get_variable("other", [4, 4]))))
weight = v1.get_variable("weight", [4, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(a, weight)[:, 0] - b))
train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
other_op = v1.train.GradientDescentOptimizer(0.1).minimize(other_loss)
v1.summary.scalar("loss", loss)
fill = v1.get_variable("fill", [], trainable=False)
moved = v1.assign_sub(fill, 0.1 * (fill - tf.cast(v1.get_collection("queue_runners")[-1].queue.size(), tf.float32)))
supervisor = v1.train.Supervisor(logdir=tempfile.mkdtemp(), save_summaries_secs=0.01)
with supervisor.managed_session() as sess:
    steps = 0
    while steps < 30:
        sess.run([train_op, loss, moved])
        sess.run(other_op)
        steps += 1
"""


AHEAD = """
import time
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [])
doubled = 2 * x
with tf.Session() as inner:
    read = lambda number: np.float32(inner.run(doubled, {x: number}))
    data = tf.data.Dataset.range(40).map(lambda n: tf.py_func(read, [tf.cast(n, tf.float32)], tf.float32)).prefetch(2)
    batch = tf.reshape(data.make_one_shot_iterator().get_next(), [])
    w = tf.Variable(1.0)
    loss = tf.square(w - batch)
    step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(10):
            session.run([step, loss])
            time.sleep(0.05)
"""


TWO_UPDATES = """
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
random = np.random.RandomState(0)
layers = tf.keras.layers
make, judge = [
    tf.keras.Sequential([layers.Dense(5), layers.BatchNormalization(momentum=0.9), layers.Dense(size)]) for size in (4, 1)
]
makes, judges = tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.01)
average = tf.Variable(0.0)


def step(x, z):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(judge(make(z, training=True), training=True) ** 2 + (judge(x, training=True) - 1.0) ** 2)
    judges.apply_gradients(zip(tape.gradient(loss, judge.trainable_variables), judge.trainable_variables))
    with tf.GradientTape() as tape:
        made = tf.reduce_mean((judge(make(z, training=True), training=True) - 1.0) ** 2)
    makes.apply_gradients(zip(tape.gradient(made, make.trainable_variables), make.trainable_variables))
    average.assign(0.9 * average + 0.1 * made)


for number in range(5):
    step(*[tf.constant(random.rand(8, size).astype("f4")) for size in (4, 3)])
"""
LOOP = """
import datetime
import time
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
x, test = random.randn(60, 8).astype("f4"), 2 * random.randn(40, 8).astype("f4")
layers = tf.keras.layers
net = tf.keras.Sequential(
    [layers.Input([8]), layers.Dense(8), layers.BatchNormalization(momentum=0.9), layers.ReLU(), layers.Dense(1)]
)
optimizer = tf.keras.optimizers.Adam(1e-2)
metric = tf.keras.metrics.Mean("mean")
seen = tf.Variable(0)
reset = getattr(metric, "reset_state", None) or metric.reset_states


def slow(value):
    time.sleep(0.002 * np.random.RandomState(seed=None).rand())
    return value


data = tf.data.Dataset.from_tensor_slices(x)
data = data.map(lambda a: tf.ensure_shape(tf.numpy_function(slow, [a], tf.float32), [8]), 4, deterministic=False)
for epoch in range(2):
    for batch in data.batch(20, drop_remainder=True):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(batch, training=True) - batch[:, :1]) ** 2)
        variables = net.trainable_variables
        optimizer.apply_gradients(list(zip(tape.gradient(loss, variables), variables)))
        seen.assign_add(20)
    reset()
    for start in range(0, 40, 20):
        part = test[start : start + 20]
        metric.update_state((net(tf.constant(part), training=False) - part[:, :1]) ** 2)
    right = int(seen) // 7
    print(f"mean {metric.result():.4f}, right {right}, clock {time.time() % 100}")
"""

PREDICTS_AND_TRAINS = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
rows = np.random.RandomState(0).rand(30, 4).astype(np.float32)
x = tf.placeholder(tf.float32, [None, 4])
scores = tf.reduce_sum(x * tf.get_variable("w", [4], initializer=tf.constant_initializer(0.5)), 1)
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(scores ** 2))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for begin in range(0, 30, 8):
        sess.run(scores, {x: rows[begin:begin + 8]})
    for _ in range(5):
        sess.run(train_op, {x: rows})
        sess.run(scores, {x: rows})
"""


EPOCHS = """
import numpy as np
from npu_shim.rehearsal.recording import order_of_data, random_seeds
import tensorflow as tf

random_seeds.seed_ops_by_call_site(1, print)
order_of_data.make_data_deterministic()
seen = []


class Watch(tf.keras.layers.Layer):
    def call(self, x):
        return tf.ensure_shape(tf.numpy_function(lambda a: seen.append(a) or a, [x], tf.float32), [20, 1])


net = tf.keras.Sequential([Watch(), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")
x = np.arange(40, dtype="f4")[:, None]
net.fit(x, x, epochs=3, batch_size=20, verbose=0)
orders = np.reshape(seen[-6:], [3, 40])
assert (np.sort(orders) == np.arange(40)).all(), orders
assert len({tuple(each) for each in orders}) == 3, orders


def data():
    return tf.data.Dataset.from_tensor_slices((x, x)).shuffle(40, seed=1).batch(20)


net.fit(data(), epochs=3, verbose=0)
one = data()
passes = [[batch.numpy() for batch, _ in one] for _ in range(3)]
assert (np.reshape(seen[-6:], [3, 40]) == np.reshape(passes, [3, 40])).all(), (seen[-6:], passes)
"""


DRAWS = """
import time
from npu_shim.rehearsal.recording import order_of_data
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
order_of_data.make_data_deterministic()


def wait(each):
    time.sleep(0.05 * (8 - each))  # the last call would draw first
    return each


def draw(each):
    with tf.control_dependencies([tf.numpy_function(wait, [each], tf.int64)]):
        return tf.random.uniform([], seed=3)


def drawn(change):
    tf.compat.v1.set_random_seed(1)
    return [each.numpy().tolist() for each in change(tf.data.Dataset.range(8))]


one_by_one = drawn(lambda data: data.map(draw).batch(8))
at_once = drawn(lambda data: data.apply(tf.data.experimental.map_and_batch(draw, 8)))
assert at_once == one_by_one, (at_once, one_by_one)
"""


SCALED_UPDATE = """
import time
from types import SimpleNamespace
import numpy as np
import tensorflow as tf
from npu_shim.rehearsal.recording import summaries

seen = []
# TensorBoard has this function, and TensorFlow 2.21 comes without it.
tf.summary.scalar = tf.compat.v2.summary.scalar = lambda name, data, step: True
summaries.watch_summaries(SimpleNamespace(adds_summary_ops=True, record_values=lambda *_: seen.append("summary")))
weight = tf.Variable(1.0)


def late():
    time.sleep(0.5)
    seen.append("update")
    return np.float32(1)


def update():
    weight.assign_add(tf.ensure_shape(tf.numpy_function(late, [], tf.float32), []))
    return 1


@tf.function
def step(is_finite):
    tf.cond(is_finite, update, lambda: 0)  # as an optimizer that scales the loss
    tf.summary.scalar("loss", 0.5, step=0)


step(tf.constant(True))
assert seen == ["update", "summary"], seen
"""


ENDED_BY_A_SIGNAL = """
import os, sys
import tensorflow as tf

print(f"loss {1.5}", flush=True)
if f"{os.sep}again{os.sep}" in sys.argv[1]:
    os.kill(os.getpid(), 9)
"""

CLOCKS = """
import time
from npu_shim.rehearsal.recording import random_seeds
import tensorflow as tf

tf.compat.v1.enable_eager_execution()


def fixed():
    return tf.random.stateless_uniform([2], seed=[5, 6]).numpy().tolist()


before = fixed()
random_seeds.seed_ops_by_call_site(1, print)


def seeds():
    now = int(time.time() * 1e6)
    numbers = [
        tf.random.stateless_uniform([2], seed=[int(time.time()), 0]),
        tf.random.stateless_normal([2], seed=tf.constant([now % 1000, 1])),
        tf.compat.v1.random.stateless_uniform([2], seed=(now % 7919, 1)),
        tf.random.experimental.Generator.from_seed(int(time.time())).normal([2]),
        tf.random.uniform([2], seed=now % 1000),
    ]
    return [each.numpy().tolist() for each in numbers]


tf.compat.v1.random.set_random_seed(int(time.time() * 1e6) % 1000)
print(seeds(), tf.random.normal([2]).numpy().tolist())
assert fixed() == before
"""

GENERATORS = """
import random
import sys
import time

from npu_shim.rehearsal.recording import random_seeds
import tensorflow as tf

keras = tf.keras
random_seeds.seed_python(1, print)
random_seeds.seed_ops_by_call_site(1, print)
for _ in range(int(sys.argv[1])):
    random.random()  # a migrated script draws more
now = int(time.time() * 1e6)
generators = [keras.random.SeedGenerator(), keras.random.SeedGenerator(), keras.random.SeedGenerator(now % 1000)]
x = tf.ones([20, 20])
drawn = [keras.random.normal([2], seed=each) for each in generators + generators]
drawn += [keras.random.normal([2]), keras.random.normal([2]), keras.random.normal([2], seed=now % 1000)]
drawn += [keras.layers.Dropout(0.5, seed=seed)(x, training=True)[0] for seed in (None, None)]
drawn += [keras.layers.Dropout(0.5, seed=now % 1000)(x, training=True)[0]]
drawn += [keras.initializers.GlorotUniform()([2]), keras.initializers.GlorotUniform()([2])]
drawn += [keras.initializers.GlorotUniform(now % 1000)([2])]
found = [str(each.numpy().tolist()) for each in drawn]
assert len(set(found)) == len(found), found
print(found)
"""


def counts_of_results(found: dict[str, Any]) -> dict[str, int]:
    """Return the number of results of each metric, which both scripts have."""
    streams = [each for each in found["streams"] if each["kind"] == "metric result"]
    assert all(each["values_original"] == each["values_migrated"] for each in streams)
    return {each["name"]: each["values_original"] for each in streams}


def test_the_elements_of_a_scaled_gradient_are_shown(repo_root: pathlib.Path, verify: Verify) -> None:
    [mutant] = [each for each in MUTANTS if each.name == "scaled gradient of one layer"]
    folder = repo_root / "samples" / mutant.sample
    text = (folder / "expected_npu.py").read_text(encoding="utf-8")
    for old, new in mutant.edits:
        text = text.replace(old, new, 1)
    original = (folder / "original.py").read_text(encoding="utf-8")
    found = verify(original, text, "--", "--steps=3")
    elements = found["first_departure"]["elements"]
    assert len(elements) == 10 and len(elements[0]["index"]) == 2
    for each in elements:
        assert float(each["original"]) == pytest.approx(2 * float(each["migrated"]), rel=1e-6)


@pytest.mark.parametrize("keep, verdict", [(0.3, "agree"), pytest.param(1.0, "differ", marks=pytest.mark.smoke)])
def test_seeds_show_a_dropout_that_does_nothing(keep: float, verdict: str, verify: Verify) -> None:
    migrated = NOISY.replace("v1.nn.dropout(x, keep_prob=0.3)", f"npu_ops.dropout(x, keep_prob={keep})")
    found = verify(NOISY, "from npu_shim.npu_init import npu_ops\n" + migrated, "--seeds", "3")
    assert found["verdict"] == verdict
    [loss] = [band for band in found["bands"] if band["kind"] == "loss"]
    assert loss["inside"] == (verdict == "agree") and loss["original"] > loss["band"]


def test_predictions_are_compared_without_training(verify: Verify) -> None:
    migrated = PREDICTS_AND_TRAINS.replace("range(0, 30", "range(0, 24").replace("Optimizer(0.1)", "Optimizer(0.2)")
    found = verify(PREDICTS_AND_TRAINS, migrated, "--predict")
    first = found["first_departure"]
    assert (found["verdict"], first["step"], first["kind"]) == ("differ", 0, "feed")
    assert {each["kind"] for each in found["streams"]} == {"feed", "fetch"}


def test_variables_of_a_session_that_stays_open_are_compared(verify: Verify) -> None:
    text = NOISY.replace("with v1.Session() as sess:", "sess = v1.Session()\nif True:").replace("40", "3")
    text = text.replace("loss =", "counter = v1.get_variable('counter', initializer=1.0)\nloss =")
    text += "\nsess.run(counter.assign(1.0).op)"  # after the last step, at which untrained variables are compared
    first = verify(text, text.replace("assign(1.0)", "assign(2.0)"))["first_departure"]
    assert (first["kind"], first["name"]) == ("final variable", "counter")


def test_a_signal_that_ends_a_repeated_run_is_named_with_the_difference(
    verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "original.py").write_text(ENDED_BY_A_SIGNAL, encoding="utf-8")
    (tmp_path / "migrated.py").write_text(ENDED_BY_A_SIGNAL.replace("1.5", "1.7"), encoding="utf-8")
    code, _, found = verify_command(tmp_path, "original.py", "migrated.py", "--", "{run}")
    failed, first, *_ = found["problems"]
    assert (code, found["verdict"]) == (2, "not run")
    assert re.match(
        r"A run that repeats a completed one failed\. \S*original.py ended with signal 9 \(SIGKILL\)", failed
    )
    assert "loss 1.5. The system kills" in failed
    assert first.startswith("The first difference is at step 0: printed 'loss # (1)'")


def test_a_clock_that_seeds_stateless_ops_and_generators_is_the_same_in_every_run(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "clocks.py"
    path.write_text(CLOCKS, encoding="utf-8")
    one, other = (subprocess.check_output([sys.executable, path], env=training.environment()) for _ in range(2))
    assert one == other and b"[[" in one


def run_python(script: str) -> None:
    """Run a script that asserts."""
    done = subprocess.run([sys.executable, "-c", script], env=training.environment(), capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_calls_of_map_and_batch_draw_their_random_numbers_one_after_the_other() -> None:
    run_python(DRAWS)


if hasattr(getattr(tf.keras, "random", None), "SeedGenerator"):

    @pytest.mark.smoke
    def test_keras_draws_the_same_numbers_in_every_run_without_a_seed_or_with_a_clock(tmp_path: pathlib.Path) -> None:
        path = tmp_path / "generators.py"
        path.write_text(GENERATORS, encoding="utf-8")
        runs = [
            subprocess.check_output([sys.executable, path, more], env=training.environment())
            for more in ("0", "0", "3")
        ]
        assert runs[0] == runs[1] == runs[2] and b"[" in runs[0]


@pytest.mark.smoke
def test_queues_of_several_threads_are_read_in_the_same_order(verify: Verify) -> None:
    runs = ["sess.run([train_op, loss, moved])", "sess.run(other_op)"]
    found = verify(QUEUES, QUEUES.replace("\n        ".join(runs), "\n        ".join(reversed(runs))))
    assert found["verdict"] == "agree" and found["original"]["steps"] == 30
    names = {each["name"] for each in found["streams"] if each["kind"] == "input"}
    assert names == {"batch 0", "batch 1", "batch 2"}  # two of the first queue, one of the second


def test_sessions_that_a_dataset_runs_ahead_of_the_steps_are_compared_in_the_steps(verify: Verify) -> None:
    assert verify(AHEAD, AHEAD.replace("prefetch(2)", "prefetch(20)"))["verdict"] == "agree"
    found = verify(AHEAD, AHEAD.replace("2 * x", "2.1 * x"))
    assert found["verdict"] == "differ" and found["first_departure"]["step"] == 2  # 0 is 0


if tf.executing_eagerly():

    def test_the_input_of_an_eager_loop_is_compared(verify: Verify) -> None:
        changed = EAGER.replace("step(tf.constant(x)", "x[2, 1, 3] += number == 3\n    step(tf.constant(x)")
        first = verify(EAGER, changed)["first_departure"]
        assert (first["step"], first["kind"], first["name"]) == (4, "input", "net 0")
        assert [each["index"] for each in first["elements"]] == [[2, 1, 3]]

    @pytest.mark.parametrize("script", [EPOCHS, SCALED_UPDATE], ids=["epochs of fit", "a summary after an update"])
    def test_values_are_read_and_recorded_in_the_order_of_the_script(script: str) -> None:
        run_python(script)

    def test_a_loop_in_a_method_fit_of_the_script_is_recorded(verify: Verify) -> None:
        found = verify(OWN_FIT, OWN_FIT.replace("SGD(0.1)", "SGD(0.2)"))
        first = found["first_departure"]
        assert (first["step"], first["kind"]) == (1, "learning rate")
        assert found["original"]["steps"] == 4

    def test_ranks_of_a_strategy_agree_with_one_process_and_a_defect_is_found(verify: Verify) -> None:
        found = verify(STRATEGY, STRATEGY, "--ranks", "2")
        assert found["verdict"] == "agree", found["first_departure"]
        assert {"loss", "gradient of the tape", "gradient", "variable"} <= {each["kind"] for each in found["streams"]}
        first = verify(STRATEGY, STRATEGY.replace(") / 8", ") / 4"), "--ranks", "2")["first_departure"]
        assert first["step"] == 1 and first["kind"] in ("loss", "gradient of the tape", "gradient")

    @pytest.mark.parametrize(
        ("old", "new", "kind", "name"),
        [
            ("momentum=0.9", "momentum=0.91", "untrained variable", ".*moving_(mean|variance)"),
            ("training=False", "training=True", "model call", ".* output 0"),
            ("    reset()\n", "", "metric result", "mean"),
            pytest.param("range(0, 40, 20)", "range(20, 40, 20)", "model call", ".* input 0", marks=pytest.mark.smoke),
            ("seen.assign_add(20)", "seen.assign_add(epoch + 20)", "untrained variable", "Variable"),
            ("// 7", "// 9", "printed", r"mean #, right #, clock # \(2\)"),
            ("", "", "", ""),
        ],
    )
    def test_defects_of_evaluation_in_a_loop_are_found(
        old: str, new: str, kind: str, name: str, verify: Verify
    ) -> None:
        found = verify(LOOP, LOOP.replace(old, new) if old else LOOP)
        if not kind:
            assert (found["verdict"], found["unsteady_prints"]) == ("agree", ["mean #, right #, clock # (3)"])
            return
        first = found["first_departure"]
        assert (found["verdict"], first["kind"]) == ("differ", kind)
        assert re.fullmatch(name, first["name"])

    @pytest.mark.parametrize("options", [(), ("--steps", "3")], ids=["all steps", "three steps"])
    def test_a_function_with_two_updates_has_the_moving_statistics_of_eager_code(
        options: tuple[str, ...], verify: Verify
    ) -> None:
        compiled = TWO_UPDATES.replace("def step", "@tf.function\ndef step")
        found = verify(TWO_UPDATES, compiled, *options)
        assert found["verdict"] == "agree", found["first_departure"]
        assert {"untrained variable", "final variable"} <= {each["kind"] for each in found["streams"]}
        first = verify(TWO_UPDATES, compiled.replace("0.9 *", "0.8 *"), *options)["first_departure"]
        assert (first["step"], first["kind"], first["name"]) == (2, "untrained variable", "Variable")

    @pytest.mark.smoke
    def test_a_script_that_departs_from_itself_is_not_reproducible(verify: Verify) -> None:
        text = LOOP.replace(
            "random = np",
            "def micro(): return datetime.datetime.now().microsecond\nnp.random.seed(micro())\nrandom = np",
        )
        text = text.replace("random.randn(60, 8)", "np.random.randn(60, 8)")
        found = verify(text, text)
        assert found["verdict"] == "not reproducible"
        assert (found["itself"]["step"], found["itself"]["kind"]) == (1, "input")
        assert found["itself"]["line"].startswith("original.py:")
        assert re.match(
            r"numpy.random.seed gets \d+ and \d+ at original.py:8, from the clock", found["itself"]["cause"]
        )

    @pytest.mark.nightly
    def test_rounding_that_training_enlarges_is_no_difference(verify: Verify) -> None:
        """A step is w = 3.99 w (1 - w), which doubles a difference, so rounding decides after 25 steps."""
        other = CHAOS.replace("3.99 * y * (1 - y)", "3.99 * y - 3.99 * y * y")
        found = verify(CHAOS, other)
        assert (found["verdict"], found["enlarged_rounding"]) == ("agree", True)
        assert max(each["largest_difference"] for each in found["streams"]) > 0.1

    @pytest.mark.nightly
    def test_a_defect_beyond_enlarged_rounding_is_found(verify: Verify) -> None:
        other = CHAOS.replace("3.99 * y * (1 - y)", "3.99 * y - 3.99 * y * y")
        found = verify(CHAOS, other.replace("    o", "    optimizer.learning_rate = 1 + 1e-4 * (number == 20)\n    o"))
        assert (found["verdict"], found["first_departure"]["kind"]) == ("differ", "learning rate")
        found = verify(CHAOS, CHAOS.replace("net - ", "net * (1 + (number == 10) * 1e-3) - "))
        assert (found["verdict"], found["first_departure"]["step"]) == ("differ", 11)

    def test_an_eager_loop_and_a_function_agree_but_for_the_key_bias(verify: Verify) -> None:
        found = verify(EAGER, EAGER.replace("def step", "@tf.function\ndef step"))
        assert found["verdict"] == "agree"
        assert all("key/bias" in name for name in found["undetermined_variables"])
        inputs = {(each["kind"], each["name"], each["migrated_name"]) for each in found["streams"]}
        assert ("input", "net 0", "x") in inputs
        counts = counts_of_results(found)
        assert counts == {"mean_loss": 6, "accuracy": 6}

    def test_a_function_agrees_with_eager_code_that_has_begun_another_step(verify: Verify) -> None:
        found = verify(EAGER, EAGER.replace("def step", "@tf.function\ndef step"), "--steps", "3")
        assert found["verdict"] == "agree", found["first_departure"]
        counts = counts_of_results(found)
        assert counts == {"mean_loss": 3, "accuracy": 3}

    @pytest.mark.parametrize(
        ("old", "new", "name"),
        [
            ("update_state(loss)", "update_state(2.0 * loss)", "mean_loss"),
            ("    mean_loss.result()\n", "", "mean_loss"),
            ("accuracy(y, outputs)", "accuracy(y, -outputs)", "accuracy"),
        ],
    )
    def test_defects_of_metrics_in_a_function_are_found(old: str, new: str, name: str, verify: Verify) -> None:
        first = verify(EAGER, EAGER.replace("def step", "@tf.function\ndef step").replace(old, new))["first_departure"]
        assert (first["step"], first["kind"], first["name"]) == (first["step"], "metric result", name)

    def test_results_in_a_training_function_of_keras_are_those_of_its_logs(verify: Verify) -> None:
        found = verify(KERAS_STEP, KERAS_STEP)
        counts = counts_of_results(found)
        assert (found["verdict"], counts) == ("agree", {"seen": 1})
