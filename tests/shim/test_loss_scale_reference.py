"""The loss scale follows random overflows as the rule says, and order and half precision are right."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.npu_init import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
    NPUDistributedOptimizer,
    NPULossScaleOptimizer,
    NPUOptimizer,
)

pytestmark = [pytest.mark.once_tf115, pytest.mark.slow]

v1 = tf.compat.v1
LARGEST = np.float32(3.4e38)


def reference(init, every, bad_every, up, down, finite):
    """The scale after each step, in float32: grow after ``every`` good ones, shrink after ``bad_every`` bad ones."""
    scale, good, bad, history = np.float32(init), 0, 0, []
    up, down = np.float32(up), np.float32(down)
    for one in finite:
        good, bad = (good + 1, bad) if one else (0, bad + 1)
        if good >= every:
            scale = np.float32(scale * up) if scale < LARGEST / up else scale
            good = bad = 0
        elif bad >= bad_every:
            scale = max(np.float32(1), np.float32(scale * down))
            good = bad = 0
        history.append(scale)
    return history


def wrappers(manager):
    return {
        "NPULossScaleOptimizer": lambda opt: NPULossScaleOptimizer(opt, manager),
        "NPUOptimizer": lambda opt: NPUOptimizer(opt, manager, is_loss_scale=True),
        "NPUOptimizer, tailing": lambda opt: NPUOptimizer(
            opt, manager, is_loss_scale=True, is_tailing_optimization=True
        ),
    }


def test_overflows_count_although_finite_steps_lie_between():
    with tf.Graph().as_default(), v1.Session() as sess:
        manager = ExponentialUpdateLossScaleManager(64, 1000, decr_every_n_nan_or_inf=2, decr_ratio=0.5)
        finite = v1.placeholder(tf.bool, [])
        update = manager.update_loss_scale(finite)
        sess.run(v1.global_variables_initializer())
        scales = []
        for is_finite in (False, True, False, True):
            sess.run(update, {finite: is_finite})
            scales.append(sess.run(manager.get_loss_scale()))
    assert scales == [64, 64, 32, 32]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 6))])
@pytest.mark.parametrize("name", ["NPULossScaleOptimizer", "NPUOptimizer", "NPUOptimizer, tailing"])
def test_random_overflows(seed, name):
    rng = np.random.RandomState(seed)
    arguments = dict(
        init_loss_scale=float(2.0 ** rng.randint(0, 120)),
        incr_every_n_steps=int(rng.randint(1, 6)),
        decr_every_n_nan_or_inf=int(rng.randint(1, 4)),
        incr_ratio=float(rng.choice([1, 1.5, 2, 1000])),
        decr_ratio=float(rng.choice([0.5, 0.8, 1, 0.001])),
    )
    finite = rng.rand(120) > rng.rand()
    bad_values = np.where(rng.rand(120) > 0.5, np.inf, np.nan).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as sess:
        factor = v1.placeholder(tf.float32, [])
        w = v1.get_variable("w", initializer=np.float32(1), use_resource=True)
        step = v1.train.get_or_create_global_step()
        manager = ExponentialUpdateLossScaleManager(**arguments)
        wrapped = wrappers(manager)[name](v1.train.GradientDescentOptimizer(2.0**-140))
        op = wrapped.apply_gradients([(factor * tf.ones([]), w)], global_step=step)
        sess.run(v1.global_variables_initializer())
        got = []
        for good, bad in zip(finite, bad_values):
            sess.run(op, {factor: 1.0 if good else bad})
            got.append(sess.run(manager.get_loss_scale()))
        assert sess.run(step) == finite.sum() and np.isfinite(sess.run(w))
    expected = reference(
        arguments["init_loss_scale"],
        arguments["incr_every_n_steps"],
        arguments["decr_every_n_nan_or_inf"],
        arguments["incr_ratio"],
        arguments["decr_ratio"],
        finite,
    )
    np.testing.assert_array_equal(got, expected, err_msg=repr(arguments))


ORDERS = {
    "loss scale": lambda o: NPULossScaleOptimizer(o, FixedLossScaleManager(2.0**12)),
    "loss scale over ranks": lambda o: NPULossScaleOptimizer(
        NPUDistributedOptimizer(o), FixedLossScaleManager(2.0**12)
    ),
    "both in one": lambda o: NPUOptimizer(o, FixedLossScaleManager(2.0**12), is_distributed=True, is_loss_scale=True),
}


@pytest.mark.parametrize("name", ORDERS)
def test_gradients_are_unscaled_before_they_are_clipped(name):
    def trained(wrap):
        with tf.Graph().as_default(), v1.Session() as sess:
            w = v1.get_variable("w", initializer=np.float32([3, 4]), use_resource=True)
            optimizer = wrap(v1.train.GradientDescentOptimizer(1.0))
            pairs = optimizer.compute_gradients(tf.reduce_sum(tf.square(w)))
            gradients, norm = tf.clip_by_global_norm([g for g, _ in pairs], 5.0)
            op = optimizer.apply_gradients(zip(gradients, [v for _, v in pairs]))
            sess.run(v1.global_variables_initializer())
            before = sess.run(norm)
            sess.run(op)
            return before, sess.run(w)

    norm, weights = trained(ORDERS[name])
    assert norm == 10.0  # of (6, 8), not of the scaled gradient
    np.testing.assert_allclose(weights, [0, 0], atol=1e-6)
    np.testing.assert_array_equal(weights, trained(lambda o: o)[1])


@pytest.mark.parametrize("name", ["loss scale", "both in one"])
def test_a_row_that_is_looked_up_twice_counts_once_in_the_norm(name):
    with tf.Graph().as_default(), v1.Session() as sess:
        w = v1.get_variable("w", initializer=np.ones([3, 1], np.float32), use_resource=True)
        optimizer = ORDERS[name](v1.train.GradientDescentOptimizer(1.0))
        pairs = optimizer.compute_gradients(tf.reduce_sum(tf.nn.embedding_lookup(w, [1, 1, 1, 1])))
        sess.run(v1.global_variables_initializer())
        assert sess.run(tf.linalg.global_norm([gradient for gradient, _ in pairs])) == 4.0  # of the rows it is 2


def test_the_scale_adapts_to_half_precision():
    """A layer whose activations are float16: the first scale overflows, the loss comes down all the same."""
    rng = np.random.RandomState(0)
    x = rng.randn(64, 16).astype(np.float32)
    y = x @ rng.randn(16, 1).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as sess:
        w = v1.get_variable("w", initializer=np.zeros([16, 1], np.float32), use_resource=True)
        out = tf.matmul(tf.constant(x, tf.float16), tf.cast(w, tf.float16))
        loss = tf.reduce_mean(tf.square(tf.cast(out, tf.float32) - y))
        step = v1.train.get_or_create_global_step()
        manager = ExponentialUpdateLossScaleManager(2.0**24, 1000, 1, 2, 0.5)
        op = NPULossScaleOptimizer(v1.train.GradientDescentOptimizer(0.1), manager).minimize(loss, global_step=step)
        sess.run(v1.global_variables_initializer())
        first = sess.run(loss)
        scales = [sess.run([op, manager.get_loss_scale()])[1] for _ in range(120)]
        done, last, scale = sess.run([step, loss, manager.get_loss_scale()])
    assert scale < 2.0**24 and scales[-1] == scale  # it came down, then held
    assert 0 < 120 - done < 24 and last < first / 1000
