"""The command verify on scripts that differentiate several losses: each has a name and a curve of its own."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import tensorflow as tf

from tests.rehearsal.conftest import Verify

GRAPH = """
import numpy as np
import tensorflow.compat.v1 as tf
import npu_shim.horovod.tensorflow as hvd

tf.disable_v2_behavior()
hvd.init()


def dense(x, name, size):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        kernel = tf.get_variable("kernel", [int(x.shape[-1]), size], initializer=tf.glorot_uniform_initializer(seed=1))
        return tf.matmul(x, kernel)


def critic(x):
    return dense(tf.tanh(dense(x, "critic/hidden", 8)), "critic/out", 1)


def train(loss, scope, rate):
    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(rate))
    return optimizer.minimize(loss, var_list=tf.trainable_variables(scope))


real, noise = tf.placeholder(tf.float32, [None, 5], "real"), tf.placeholder(tf.float32, [None, 3], "noise")
drawn = dense(noise, "generator", 5)
critic_loss = tf.reduce_mean(critic(drawn)) - tf.reduce_mean(critic(real)) + 40.0
generator_loss = -tf.reduce_mean(critic(drawn))
train_critic, train_generator = train(critic_loss, "critic", 0.02), train(generator_loss, "generator", 0.01)
data = np.random.RandomState(0).randn(12, 8, 8).astype("f4")
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for number, batch in enumerate(data):
        batch = batch[hvd.rank() :: hvd.size()]
        session.run(train_critic, {real: batch[:, :5], noise: batch[:, 5:]})
        if number % 3 == 2:
            session.run(train_generator, {noise: batch[:, 5:]})
"""

TAPES = """
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
dense = tf.keras.layers.Dense
generator = tf.keras.Sequential([tf.keras.layers.Input([3]), dense(5)])
critic = tf.keras.Sequential([tf.keras.layers.Input([5]), dense(8, "tanh"), dense(1)])
of_generator, of_critic = tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.02)


def penalty(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = critic(x)
    return tf.reduce_mean((tf.norm(tape.gradient(found, x), axis=1) - 1.0) ** 2)


def apply(tape, loss, model, optimizer):
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


FUNCTION
def step_of_critic(real, noise):
    with tf.GradientTape() as tape:
        drawn = generator(noise)
        loss = tf.reduce_mean(critic(drawn)) - tf.reduce_mean(critic(real)) + 10.0 * penalty(drawn) + 40.0
    apply(tape, loss, critic, of_critic)


FUNCTION
def step_of_generator(noise):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(critic(generator(noise)))
    apply(tape, loss, generator, of_generator)


of_generator.build(generator.trainable_variables) if hasattr(of_generator, "build") else None
of_critic.build(critic.trainable_variables) if hasattr(of_critic, "build") else None
for number, batch in enumerate(np.random.RandomState(0).randn(12, 8, 8).astype("f4")):
    step_of_critic(tf.constant(batch[:, :5]), tf.constant(batch[:, 5:]))
    if number % 3 == 2:
        step_of_generator(tf.constant(batch[:, 5:]))
"""

SHARED = """
import numpy as np
import tensorflow as tf

dense = tf.keras.layers.Dense(4, kernel_initializer=tf.keras.initializers.Constant(0.1))
net = tf.keras.Sequential([tf.keras.layers.Input([3]), dense])
optimizer = tf.keras.optimizers.SGD(0.01)
variables = net.trainable_variables
for batch in np.random.RandomState(0).randn(3, 2, 8, 3).astype("f4"):
    with tf.GradientTape(persistent=True) as tape:
        found = net(tf.constant(batch[0]))
        loss, other = tf.reduce_mean(found ** 2), tf.reduce_mean(found ** 4) + 40.0
    first = tape.gradient(loss, variables)
    second = tape.gradient(other, variables)
    optimizer.apply_gradients(zip([a + b for a, b in zip(first, second)], variables))
"""

ACCUMULATED = """
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
net = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(4)])
optimizer = tf.keras.optimizers.SGD(0.1)
for batch in np.random.RandomState(0).randn(3, 2, 8, 3).astype("f4"):
    sums = 0.0
    for part in batch:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(net(tf.constant(part)) ** 2)
        sums += tape.gradient(loss, net.trainable_variables[0])
    optimizer.apply_gradients([(sums, net.trainable_variables[0])])
"""


def losses(found: Any) -> dict[str, list[int]]:
    """Return the steps of each loss."""
    return {each["name"]: [point["step"] for point in each["curve"]] for each in found["losses"]}


def is_near(found: Any, loss: str, value: float) -> bool:
    """Return True if all values of a loss are near a number."""
    [curve] = [each["curve"] for each in found["losses"] if each["name"] == loss]
    return all(abs(point[side] - value) < 10 for point in curve for side in ("original", "migrated"))


@pytest.mark.parametrize("ranks", [(), ("--ranks", "2")], ids=["one process", "two ranks"])
def test_two_optimizers_of_a_graph_have_a_loss_each(
    ranks: tuple[str, ...], verify: Verify, tmp_path: pathlib.Path
) -> None:
    found = verify(GRAPH, GRAPH, *ranks)
    assert found["verdict"] == "agree", found["problems"]
    assert losses(found) == {"loss": list(range(1, 13)), "loss 2": [3, 6, 9, 12]}
    assert is_near(found, "loss", 40) and is_near(found, "loss 2", 0)
    assert found["original"]["steps"] == found["migrated"]["steps"] == 12
    page = (tmp_path / "report" / "verify.html").read_text(encoding="utf-8")
    assert "<h2>Loss</h2>" in page and "<h2>Loss 2</h2>" in page


def test_a_wrong_loss_of_the_second_optimizer_is_named_at_its_step(verify: Verify) -> None:
    first = verify(GRAPH, GRAPH.replace("= -tf.reduce_mean", "= -1.1 * tf.reduce_mean"))["first_departure"]
    assert (first["step"], first["kind"], first["name"]) == (3, "loss", "loss 2")


def test_a_wrong_rate_of_the_second_optimizer_is_named(verify: Verify) -> None:
    first = verify(GRAPH, GRAPH.replace("0.01)", "0.012)"))["first_departure"]
    assert (first["step"], first["kind"], first["name"]) == (3, "learning rate", "learning_rate of optimizer 2")


if tf.executing_eagerly():

    @pytest.mark.parametrize("function", ["", "@tf.function"], ids=["eager", "function"])
    def test_two_tapes_have_a_loss_each(function: str, verify: Verify) -> None:
        script = TAPES.replace("FUNCTION", function)
        found = verify(script, script.replace("= -tf.reduce_mean", "= -1.1 * tf.reduce_mean"))
        first = found["first_departure"]
        assert (first["step"], first["kind"], first["name"]) == (3, "loss", "loss 2")
        assert losses(found) == {"loss": list(range(1, 13)), "loss 2": [3, 6, 9, 12]}
        assert is_near(found, "loss 2", 0)
        assert "loss by inputs" in {each["name"] for each in found["streams"]}

    def test_one_tape_may_differentiate_two_losses_by_the_same_variables(verify: Verify) -> None:
        found = verify(SHARED, SHARED)
        assert losses(found) == {"loss": [1, 2, 3], "loss 2": [1, 2, 3]}, found
        assert is_near(found, "loss", 0) and is_near(found, "loss 2", 40), found["losses"]

    def test_parts_of_a_batch_have_the_same_loss(verify: Verify) -> None:
        found = verify(ACCUMULATED, ACCUMULATED)
        assert not found["losses"]
        [stream] = [each for each in found["streams"] if each["kind"] == "loss"]
        assert stream["name"] == "loss" and stream["values_original"] == 6
        assert found["original"]["steps"] == 3
