"""``npu-shim run --progress --tensorboard``: what event files have, and that training is the same as without them."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import subprocess
from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf

from tests.marks import of_version_1

Python = Callable[..., "subprocess.CompletedProcess[str]"]
HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None  # TensorFlow 2.21 does not install it

# Each prints one JSON object: the losses of its steps, and its final weights.
SESSION = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(3)
x = tf.placeholder(tf.float32, [8, 4], name="x")
w = tf.get_variable("w", [4, 1])
noisy = tf.nn.dropout(x, rate=0.5)
loss = tf.reduce_mean((tf.matmul(noisy, w) - 1) ** 2, name="mean")
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.1, step, 10, 0.5)
train = tf.train.GradientDescentOptimizer(rate).minimize(loss, step)
merged = tf.summary.merge([tf.summary.scalar("summarised", tf.reduce_sum(w))])
other = tf.placeholder(tf.float32, [], name="other")
unrelated = tf.train.GradientDescentOptimizer(0.1).minimize(loss * other)
losses = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number in range(30):
        fetches = {"train": train, "all": [loss]} if number % 2 else [train, loss, merged]
        got = session.run(fetches, {x: np.ones([8, 4])})
        losses.append(got["all"][0] if number % 2 else got[1])
    session.run(unrelated, {x: np.ones([8, 4]), other: 1.0})
    print(json.dumps({"losses": [float(each) for each in losses], "weights": session.run(w).ravel().tolist()}))
"""
ESTIMATOR = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf


def model(features, labels, mode):
    out = tf.layers.dense(features, 1, kernel_initializer=tf.ones_initializer())
    loss = tf.losses.mean_squared_error(labels, out)
    train = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    return tf.data.Dataset.from_tensors((np.ones([8, 4], "f4"), np.ones([8, 1], "f4"))).repeat(25)


estimator = tf.estimator.Estimator(model, sys.argv[1], tf.estimator.RunConfig(tf_random_seed=1))
estimator.train(data)
metrics = estimator.evaluate(data, steps=2)
estimator.train(data)
weights = estimator.get_variable_value("dense/kernel")
print(json.dumps({"steps": int(metrics["global_step"]), "weights": weights.ravel().tolist()}))
"""
FIT = """
import json, sys
import numpy as np
import tensorflow as tf

layers = [tf.keras.layers.Dense(2, kernel_initializer="ones"), tf.keras.layers.Dense(1, kernel_initializer="ones")]
model = tf.keras.Sequential(layers)
model.compile(tf.keras.optimizers.SGD(0.01), "mse")
x, y = np.ones([40, 3], "f4"), np.ones([40, 1], "f4")
history = model.fit(x, y, batch_size=4, epochs=3, verbose=0, validation_data=(x, y), shuffle=False)
model.train_on_batch(x, y)
losses = [float(each) for each in history.history["loss"]]
print(json.dumps({"losses": losses, "weights": np.concatenate([w.ravel() for w in model.get_weights()]).tolist()}))
"""
LOOPS = """
import importlib.util, json, sys
import tensorflow as tf

if not importlib.util.find_spec("tensorboard"):
    tf.summary.scalar = lambda *arguments: None
tf.random.set_seed(5)
w = tf.Variable(tf.ones([4, 1]))
optimizer = tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.01, 10, 0.5))
writer = tf.summary.create_file_writer(sys.argv[1])


def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.dropout(x, 0.5) @ w - 1.0) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    return loss


@tf.function
def compiled(x):
    loss = step(x)
    tf.summary.scalar("inside", loss, tf.cast(optimizer.iterations, tf.int64))
    return {"other": 2.0 * loss, "loss": loss}


@tf.function(jit_compile=True)
def several(x):
    for _ in tf.range(5):
        step(x)
    return x


losses = []
with writer.as_default():
    for number in range(10):
        losses.append(compiled(tf.ones([8, 4]))["loss"])
        tf.summary.scalar("outside", losses[-1], number)
for number in range(10):
    losses.append(step(tf.ones([8, 4])))
for number in range(4):
    several(tf.ones([8, 4]))
print(json.dumps({"losses": [float(each) for each in losses], "weights": w.numpy().ravel().tolist()}))
"""

SCALED = """
import json
import tensorflow as tf

w = tf.Variable(tf.ones([4, 1]))
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.01))


def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - 1.0) ** 2)
        scaled = (getattr(optimizer, "get_scaled_loss", None) or optimizer.scale_loss)(loss)
    gradients = getattr(optimizer, "get_unscaled_gradients", list)([tape.gradient(scaled, w)])
    optimizer.apply_gradients([(gradients[0], w)])
    return loss


compiled = tf.function(step)
losses = [float(call(tf.ones([8, 4]))) for call in [step] * 5 + [compiled] * 5]
print(json.dumps({"losses": losses, "weights": w.numpy().ravel().tolist()}))
"""


def run(
    python: Python, tmp_path: pathlib.Path, script: str, options: list[str], *arguments: str
) -> tuple[dict[str, Any], str]:
    """Return what a script prints, and its last line of progress."""
    (tmp_path / "a.py").write_text(script)
    done = python(tmp_path, "-m", "npu_shim", "run", "--no-shape-watch", *options, "a.py", *arguments)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    return json.loads([line for line in lines if line.startswith("{")][-1]), lines[-1]


def events(folder: pathlib.Path) -> dict[str, dict[int, float]]:
    """Return the scalars of an event file as TensorBoard reads them: by tag, the last value of each step."""
    if not HAS_TENSORBOARD:
        found: dict[str, dict[int, float]] = {}
        (file,) = folder.iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
        return found
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder), {"scalars": 0}).Reload()
    return {tag: {each.step: each.value for each in read.Scalars(tag)} for tag in read.Tags()["scalars"]}


def watched(
    python: Python, tmp_path: pathlib.Path, script: str, *arguments: str
) -> tuple[dict[str, Any], dict[str, dict[int, float]], str]:
    """Run a script with and without the options; return its results, the events, and the last line of progress."""
    plain, _ = run(python, tmp_path, script, [], *[each.format("plain") for each in arguments])
    options = ["--progress", "--tensorboard", "events"]
    found, line = run(python, tmp_path, script, options, *[each.format("watched") for each in arguments])
    assert found == plain  # bit by bit
    made = events(tmp_path / "events" / "rank_0")
    assert made["memory/resident_bytes"] and min(made["memory/resident_bytes"].values()) > 50e6
    assert made["global_step"] and made["steps_per_second"]
    return found, made, line


@of_version_1
def test_session(tmp_path: pathlib.Path, python: Python) -> None:
    found, made, line = watched(python, tmp_path, SESSION)
    assert list(made["loss"]) == list(range(1, 31))
    assert np.allclose(list(made["loss"].values()), found["losses"])
    assert np.allclose(list(made["fetch/mean"].values()), found["losses"])
    assert np.allclose(
        [made["learning_rate"][step] for step in (2, 12, 22)], [0.1 * 0.5 ** (n / 10) for n in (1, 11, 21)], rtol=0.1
    )
    assert list(made["summary/summarised"]) == list(range(1, 31, 2))
    assert re.search(r"rank 0  step 30  [\d.]+ steps/s  loss ", line)


if hasattr(tf, "estimator"):

    @pytest.mark.nightly
    def test_estimator(tmp_path: pathlib.Path, python: Python) -> None:
        found, made, line = watched(python, tmp_path, ESTIMATOR, "{}")
        assert found["steps"] == 25 and max(made["loss"]) == 50 and "step 50 " in line
        assert list(made["metric/evaluate_loss"]) == [25] and made["learning_rate"][3] == pytest.approx(0.05)


def test_fit(tmp_path: pathlib.Path, python: Python) -> None:
    found, made, line = watched(python, tmp_path, FIT)
    assert list(made["log/batch_loss"]) == list(range(1, 31))
    assert np.allclose(list(made["log/epoch_loss"].values()), found["losses"])
    assert list(made["log/epoch_val_loss"]) == [10, 20, 30] and "step 31 " in line


if not tf.__version__.startswith("1."):

    @pytest.mark.nightly
    def test_custom_loops(tmp_path: pathlib.Path, python: Python) -> None:
        found, made, line = watched(python, tmp_path, LOOPS, "{}")
        assert list(made["loss"])[:20] == list(range(1, 21)) and "step 40 " in line
        assert np.allclose(list(made["loss"].values())[:20], found["losses"])
        for tag in ("summary/inside", "summary/outside") if HAS_TENSORBOARD else ():
            assert np.allclose(list(made[tag].values()), found["losses"][:10])
        assert made["learning_rate"][10] == pytest.approx(0.0052, rel=0.05)  # before or after the count of the step

    def test_a_loss_is_shown_without_its_scale(tmp_path: pathlib.Path, python: Python) -> None:
        found, made, _ = watched(python, tmp_path, SCALED)
        assert np.allclose(list(made["loss"].values()), found["losses"]) and len(made["loss"]) == 10
