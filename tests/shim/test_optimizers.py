"""Optimizer wrappers: the wrapped optimizer on one process, a clear error on several, and loss scaling."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim._tensorflow import tf_api
from npu_shim.npu_init import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
    KerasDistributeOptimizer,
    NPUDistributedOptimizer,
    NPULossScaleOptimizer,
    NPUOptimizer,
    npu_allreduce,
    npu_distributed_optimizer_wrapper,
    npu_keras_optimizer,
    npu_tf_optimizer,
)
from tests.control_flow import control_flow_v2

v1 = tf.compat.v1
_ADAM = v1.train.AdamOptimizer
X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def _fixed(opt):
    return NPULossScaleOptimizer(opt, FixedLossScaleManager(1024))


WRAPPERS = {
    "NPUDistributedOptimizer": NPUDistributedOptimizer,
    "NPUDistributedOptimizer with sharding": lambda o: NPUDistributedOptimizer(o, is_weight_update_sharding=True),
    "npu_tf_optimizer": npu_tf_optimizer,
    "npu_distributed_optimizer_wrapper": npu_distributed_optimizer_wrapper,
    "NPUOptimizer": NPUOptimizer,
    "NPUOptimizer, distributed, loss scale": lambda o: NPUOptimizer(
        o, FixedLossScaleManager(256), is_distributed=True, is_loss_scale=True
    ),
    "NPULossScaleOptimizer, fixed": _fixed,
    "NPULossScaleOptimizer, fixed, no check": lambda o: NPULossScaleOptimizer(o, FixedLossScaleManager(64, False)),
    "NPULossScaleOptimizer, exponential": lambda o: NPULossScaleOptimizer(
        o, ExponentialUpdateLossScaleManager(2**15, 3), is_distributed=True
    ),
    "loss scale over distributed": lambda o: _fixed(NPUDistributedOptimizer(o)),
    "distributed over loss scale": lambda o: NPUDistributedOptimizer(_fixed(o)),
}


def train(wrap, steps=5, sparse=False, resource=True):
    """Weights and global step after some steps."""
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=np.ones([4, 2], np.float32), use_resource=resource)
        unused = v1.get_variable("unused", initializer=np.float32(1), use_resource=resource)
        if sparse:
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, [0, 2, 2])))
        else:
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(X), w[:2]) - 1.0))
        step = v1.train.get_or_create_global_step()
        optimizer = wrap(_ADAM(0.1))
        op = optimizer.minimize(loss, global_step=step, var_list=[w, unused])
        assert optimizer.get_slot_names() == ["m", "v"] and optimizer.get_slot(w, "m") is not None
        with v1.Session() as sess:
            sess.run(v1.global_variables_initializer())
            for _ in range(steps):
                sess.run(op)
            return sess.run([w, step])


@pytest.mark.parametrize(
    "sparse, resource", [(False, False), (True, True)], ids=["dense, ref variables", "sparse, resource variables"]
)
@pytest.mark.parametrize("name", WRAPPERS)
def test_on_one_process_it_is_the_wrapped_optimizer(name, sparse, resource):
    with control_flow_v2(resource and not tf.__version__.startswith("1.")):
        wanted, step = train(lambda o: o, sparse=sparse, resource=resource)
        got, got_step = train(WRAPPERS[name], sparse=sparse, resource=resource)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)  # the scale is a power of two: nothing but Adam's epsilon moves
    assert got_step == step == 5


def overflow_run(manager, bad_steps, steps, optimizer=None):
    """Runs steps of which some have an infinite gradient: weights, scale and global step after each."""
    with tf.Graph().as_default():
        bad = v1.placeholder(tf.bool, [])
        w = v1.get_variable("w", initializer=np.float32(1), use_resource=True)
        loss = w * tf.where(bad, np.float32(np.inf), np.float32(1))
        step = v1.train.get_or_create_global_step()
        manager = manager()
        wrapped = NPULossScaleOptimizer(v1.train.MomentumOptimizer(0.1, 0.9), manager)
        op = wrapped.minimize(loss, global_step=step)
        fetches = [w, manager.get_loss_scale(), step, wrapped.get_slot(w, "momentum")]
        history = []
        with v1.Session() as sess:
            sess.run(v1.global_variables_initializer())
            for i in range(steps):
                sess.run(op, {bad: i in bad_steps})
                history.append([float(v) for v in sess.run(fetches)])
        return np.array(history).T


def test_an_overflow_touches_nothing_but_the_scale():
    w, scale, step, slot = overflow_run(lambda: ExponentialUpdateLossScaleManager(1024, 100, 1, 2, 0.5), {1, 2}, 4)
    assert w[0] == w[1] == w[2] != w[3] and slot[0] == slot[1] == slot[2] != slot[3]
    assert list(scale) == [1024, 512, 256, 256] and list(step) == [1, 1, 1, 2]


@pytest.mark.parametrize("place", ["", "train"])
@pytest.mark.parametrize(
    "manager", [lambda: FixedLossScaleManager(8), lambda: ExponentialUpdateLossScaleManager(8, 99, 1, 2, 0.5)]
)
def test_scripts_fetch_the_scale_and_the_overflow_by_name(place, manager):
    """The overflow tensor is True if nothing overflowed. A resource variable's own name is its handle."""
    with tf.Graph().as_default(), v1.variable_scope("", use_resource=False), v1.name_scope(place):
        bad = v1.placeholder_with_default(False, [])
        w = v1.get_variable("w", initializer=np.float32(1), use_resource=True)
        loss = w * tf.where(bad, np.float32(np.inf), np.float32(1))
        op = NPULossScaleOptimizer(v1.train.GradientDescentOptimizer(0.1), manager()).minimize(loss)
        names = [f"{place}/{name}".strip("/") for name in ("loss_scale:0", "overflow_status_reduce_all:0")]
        with v1.Session() as sess:
            sess.run(v1.global_variables_initializer())
            assert sess.run([*names, op])[:2] == [8, True]
            assert not sess.run([names[1], op], {bad: True})[0]


SCALES = {
    "grows after good steps": (dict(init_loss_scale=8, incr_every_n_steps=2), set(), [8, 16, 16, 32, 32, 64]),
    "shrinks after two bad steps": (
        dict(init_loss_scale=8, incr_every_n_steps=99),
        {0, 1, 4, 5},
        [8, 6.4, 6.4, 6.4, 6.4, 5.12],
    ),
    "a bad step sets the good ones to zero": (dict(init_loss_scale=8, incr_every_n_steps=3), {2}, [8, 8, 8, 8, 8, 16]),
    "never below 1": (
        dict(init_loss_scale=2, incr_every_n_steps=9, decr_every_n_nan_or_inf=1, decr_ratio=0.1),
        {0, 1},
        [1, 1],
    ),
    "never beyond float32": (dict(init_loss_scale=2.0**127, incr_every_n_steps=1), set(), [2.0**127] * 2),
}


@pytest.mark.parametrize("arguments, bad, wanted", SCALES.values(), ids=SCALES)
def test_the_exponential_scale(arguments, bad, wanted):
    scale = overflow_run(lambda: ExponentialUpdateLossScaleManager(**arguments), bad, len(wanted))[1]
    np.testing.assert_allclose(scale, wanted, rtol=1e-6)


def test_a_fixed_scale_skips_steps_with_overflows():
    w, scale, step, _ = overflow_run(lambda: FixedLossScaleManager(128), {1}, 3)
    assert list(scale) == [128] * 3 and list(step) == [1, 1, 2] and w[0] == w[1] != w[2]


def test_without_the_check_every_step_is_applied():
    w, _, step, _ = overflow_run(lambda: FixedLossScaleManager(128, enable_overflow_check=False), {1}, 2)
    assert not np.isfinite(w[1]) and list(step) == [1, 2]


def test_a_small_gradient_survives_half_precision():
    def gradient(wrap):
        with tf.Graph().as_default():
            w = v1.get_variable("w", initializer=np.float32(1), use_resource=True)
            half = tf.cast(tf.cast(w, tf.float16) * np.float16(2.0**-14), tf.float16) * np.float16(2.0**-12)
            ((g, _),) = wrap(v1.train.GradientDescentOptimizer(1.0)).compute_gradients(tf.cast(half, tf.float32))
            with v1.Session() as sess:
                sess.run(v1.global_variables_initializer())
                return float(sess.run(g))

    assert gradient(lambda o: o) == 0.0 and gradient(_fixed) == 2.0**-26


@pytest.mark.parametrize("values", ["tensor", "list", "tuple", "sparse"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "max", "min", "prod"])
def test_allreduce_on_one_rank_is_the_value(values, reduction):
    with tf.Graph().as_default(), v1.Session() as sess:
        x = tf.constant([1.0, -2.0])
        given = {"tensor": x, "list": [x, None], "tuple": (x, x), "sparse": tf.IndexedSlices(x, tf.constant([0, 3]))}[
            values
        ]
        got = npu_allreduce(given, reduction)
        if values in ("list", "tuple"):
            assert isinstance(got, list) and len(got) == 2
            got = got[0]
        got = got.values if values == "sparse" else got
        np.testing.assert_array_equal(sess.run(got), [1.0, -2.0])


WRONG = [
    (
        lambda: npu_allreduce(1.0, "median"),
        ValueError,
        "reduction='median' is not allowed: it must be one of mean, sum",
    ),
    (lambda: FixedLossScaleManager(0.5), ValueError, "loss_scale=0.5 is not allowed: it must be at least 1"),
    (lambda: ExponentialUpdateLossScaleManager(8, 0), ValueError, "incr_every_n_steps=0 is not allowed"),
    (lambda: ExponentialUpdateLossScaleManager(8, 1, decr_ratio=1.5), ValueError, "decr_ratio=1.5 is not allowed"),
    (lambda: NPULossScaleOptimizer("adam", FixedLossScaleManager(8)), TypeError, "opt='adam' is str, but must be"),
    (
        lambda: NPUDistributedOptimizer("adam"),
        TypeError,
        r"optimizer='adam' is str.*Optimizer\. For a Keras optimizer use npu_keras_optimizer",
    ),
    (lambda: NPUOptimizer(_ADAM(), is_loss_scale=True), ValueError, "is_loss_scale=True needs loss_scale_manager"),
    (lambda: KerasDistributeOptimizer(_ADAM()), TypeError, "must be a Keras optimizer.*npu_tf_optimizer"),
]


@pytest.mark.parametrize("call, error, text", WRONG, ids=[w[2] for w in WRONG])
def test_wrong_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_attributes_of_the_wrapped_optimizer_are_those_of_the_loss_scale_optimizer():
    inner = _ADAM()
    inner.own = 5
    assert _fixed(inner).own == 5
    with pytest.raises(AttributeError):
        _fixed(inner).nothing


@pytest.mark.parametrize("wrap", [npu_keras_optimizer, KerasDistributeOptimizer], ids=lambda w: w.__name__)
def test_a_keras_optimizer_keeps_its_class_and_settings(wrap):
    inner = v1.keras.optimizers.SGD(learning_rate=0.25, momentum=0.5)
    wrapped = wrap(inner)
    assert isinstance(wrapped, type(inner)) and isinstance(wrapped, KerasDistributeOptimizer)
    config, before = wrapped.get_config(), inner.get_config()
    assert config.pop("name") == "NpuKerasOptimizer" and before.pop("name")
    assert config == before
    assert type(wrap(wrapped)) is type(wrapped)


def test_a_keras_model_trains_the_same_with_it():
    def weights(wrap):
        with tf.Graph().as_default() if tf_api.has_keras_sessions() else _eager():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,), kernel_initializer="ones")])
            model.compile(wrap(v1.keras.optimizers.SGD(learning_rate=0.01)), "mse")
            model.fit(X, np.zeros([2, 1], np.float32), epochs=3, verbose=0, shuffle=False)
            return model.get_weights()[0]

    wanted = weights(lambda o: o)
    np.testing.assert_allclose(weights(npu_keras_optimizer), wanted, rtol=1e-6)
    np.testing.assert_allclose(weights(npu_distributed_optimizer_wrapper), wanted, rtol=1e-6)


def test_a_keras_optimizer_by_name():
    assert isinstance(npu_distributed_optimizer_wrapper("sgd"), v1.keras.optimizers.get("sgd").__class__)


class _eager:
    """Keras 3 has no graph mode: it trains eagerly."""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return False


class Param(int):
    """A variable, which takes attributes."""


class OptimizerOfKeras:
    """The shape of the optimizers of the package keras for TensorFlow 1: no name, no apply_gradients."""

    def __init__(self, lr=0.1):
        self.lr = lr

    def get_config(self):
        return {"lr": self.lr}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def get_gradients(self, loss, params):
        return [loss * param for param in params]


def test_an_optimizer_of_the_package_keras_is_averaged_where_it_computes_gradients(monkeypatch):
    made = npu_keras_optimizer(OptimizerOfKeras(lr=0.5))
    assert isinstance(made, OptimizerOfKeras) and made.lr == 0.5
    params = [Param(3), Param(4)]
    assert made.get_gradients(2, params) == [6, 8]
    module = "npu_shim.optimizer.gradient_averaging."
    monkeypatch.setattr(module + "world_size", lambda: 2)
    monkeypatch.setattr(module + "average_gradients", lambda pairs: [(each / 2, param) for each, param in pairs])
    assert made.get_gradients(2, params) == [3, 4]
