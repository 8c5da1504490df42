"""npu_unary_ops.gelu against float64, in every type, shape and control flow.

Errors are counted in scaled units: the distance between neighbouring numbers
of the type at max(1, |wanted|). No more than two of them are allowed; in
float64 four, because what is wanted is no better known.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator.npu_unary_ops import npu_unary_ops
from npu_shim.ops.gelu import gelu
from tests.control_flow import control_flow_v2

A, B = math.sqrt(2 / math.pi), 0.044715
X = np.concatenate([np.linspace(-12, 12, 24_001), [-40.0, 0.0, 40.0]])


def truth(x):
    """gelu, gelu' and gelu'' in float64."""
    x = np.asarray(x, np.float64)
    t, d1, d2 = 2 * A * (x + B * x**3), 2 * A * (1 + 3 * B * x**2), 12 * A * B * x
    with np.errstate(over="ignore"):
        s, r = 1 / (1 + np.exp(-t)), 1 / (1 + np.exp(t))
    return x * s, s * (1 + x * r * d1), s * r * (2 * d1 + x * ((r - s) * d1**2 + d2))


TYPES = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}  # and their unit at 1
ALLOWED = {"float64": 4, "float32": 2, "float16": 2, "bfloat16": 2}


def units(got, wanted, name):
    """By how many scaled units of a type numbers differ from those of float64."""
    return np.abs(got - wanted) / (TYPES[name] * np.maximum(1, np.abs(wanted)))


@pytest.mark.parametrize("name", TYPES, ids=lambda n: f"value and gradient have few scaled units of error in {n}")
def test_value_and_gradient(run, name):
    def build():
        x = tf.cast(tf.constant(X), name)
        y = gelu(x)
        assert y.dtype == name and y.shape == x.shape
        (gradient,) = tf.gradients(y, x, grad_ys=tf.cast(tf.fill(x.shape, 2.0), name))
        return [tf.cast(v, tf.float64) for v in (x, y, gradient)]

    x, y, gradient = run(build)
    value, slope, _ = truth(x)
    assert units(y, value, name).max() <= ALLOWED[name]
    assert units(gradient / 2, slope, name).max() <= ALLOWED[name]


@pytest.mark.parametrize("name", TYPES, ids=lambda n: f"infinity has its limits and NaN stays in {n}")
@pytest.mark.parametrize("times", [1, 500], ids=["few", "many"])
def test_ends(run, name, times):
    def build():
        x = tf.cast(tf.constant([-np.inf, np.inf, np.nan, -1e4, 1e4, 300.0, -300.0] * times), tf.as_dtype(name))
        y = gelu(x)
        return [tf.cast(v, tf.float32) for v in (x, y, tf.gradients(y, x)[0])]

    x, y, gradient = run(build)
    np.testing.assert_array_equal(y, [0, np.inf, np.nan, 0, x[4], x[5], 0] * times)
    np.testing.assert_array_equal(gradient, [0, 1, np.nan, 0, 1, 1, 0] * times)


def test_gradient_agrees_with_differences_of_the_value(run):
    x, h = np.linspace(-6, 6, 241), 1e-5

    def build():
        t = tf.constant(x)
        return gelu(t + h), gelu(t - h), tf.gradients(gelu(t), t)[0]

    up, down, gradient = run(build)
    np.testing.assert_allclose(gradient, (up - down) / (2 * h), atol=1e-9)  # h^2 times the third derivative, below 4


def test_second_order_gradient_is_right(run):
    x = np.linspace(-8, 8, 161)

    def build():
        t = tf.constant(x)
        (first,) = tf.gradients(gelu(t), t, grad_ys=tf.fill([161], tf.constant(3.0, tf.float64)))
        return tf.gradients(first, t)[0]

    np.testing.assert_allclose(run(build), 3 * truth(x)[2], atol=1e-12)


def test_gradient_penalty_reaches_the_incoming_gradient(run):
    """d/dy of the first gradient is gelu' again, as double backpropagation needs."""

    def build():
        x, y = tf.constant([0.5, -1.0]), tf.constant([2.0, 3.0])
        (first,) = tf.gradients(gelu(x), x, grad_ys=y)
        return tf.gradients(first, y)[0]

    np.testing.assert_allclose(run(build), truth([0.5, -1.0])[1], rtol=1e-6)


@pytest.mark.parametrize("shape", [None, [None], [None, 3], [], [0, 4]], ids=lambda s: f"shape {s} is kept")
def test_shapes(run, shape):
    value = np.full([2 if d is None else d for d in (shape if shape is not None else [2, 2])], 0.7, np.float32)
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, shape)
        y = gelu(x)
        (gradient,) = tf.gradients(y, x)
        for made in (y, gradient):
            assert made.shape.rank == x.shape.rank
            assert made.shape.rank is None or made.shape.as_list() == x.shape.as_list()
        with tf.compat.v1.Session() as sess:
            got, slope = sess.run([y, gradient], {x: value})
    np.testing.assert_allclose(got, truth(value)[0], rtol=1e-6)
    np.testing.assert_allclose(slope, truth(value)[1], rtol=1e-6)


@pytest.mark.parametrize("shape", [[3], None], ids=["static", "unknown"])
def test_the_gradient_does_not_compute_the_value_again(shape):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, shape)
        tf.gradients(gelu(x), x)
        assert len([op for op in graph.get_operations() if op.type in ("Tanh", "Exp")]) == 1


@pytest.mark.parametrize("count", [3, 50_000], ids=["small", "large"])
def test_a_gradient_taken_in_a_branch_of_a_value_outside(count):
    value = np.linspace(-3, 3, count).astype(np.float32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        x = tf.compat.v1.placeholder(tf.float32, None)
        y = gelu(x)
        slope = tf.compat.v1.cond(
            tf.compat.v1.placeholder_with_default(True, []), lambda: tf.gradients(y, x)[0], lambda: x
        )
        np.testing.assert_allclose(sess.run(slope, {x: value}), truth(value)[1], atol=1e-6)


def _plain(x):
    return gelu(x)


def _in_a_loop(x):
    return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, gelu(v)), [tf.constant(0), x])[1]


def _in_a_branch(x):
    return tf.compat.v1.cond(tf.compat.v1.placeholder_with_default(True, []), lambda: gelu(x), lambda: x)


def _in_a_function(x):
    return tf.function(gelu, autograph=False)(x)


def _in_a_branch_in_a_loop(x):
    def body(i, v):
        return i + 1, tf.compat.v1.cond(i < 2, lambda: gelu(v), lambda: v * 2.0)

    return tf.while_loop(lambda i, v: i < 3, body, [tf.constant(0), x])[1]


def _by_hand(build, x):
    """Value and gradient of the same composition, in float64."""

    def step(v, slope):
        value, d, _ = truth(v)
        return value, slope * d

    v, slope = np.asarray(x, np.float64), np.ones(len(x))
    for _ in range({_in_a_loop: 3, _in_a_branch_in_a_loop: 2}.get(build, 1)):
        v, slope = step(v, slope)
    return (2 * v, 2 * slope) if build is _in_a_branch_in_a_loop else (v, slope)


@pytest.mark.parametrize("v2", [False, True], ids=["control flow v1", "control flow v2"])
@pytest.mark.parametrize(
    "build",
    [_plain, _in_a_loop, _in_a_branch, _in_a_function, _in_a_branch_in_a_loop],
    ids=lambda b: b.__name__.strip("_").replace("_", " "),
)
def test_gradients_through_control_flow(run, build, v2):
    x = [-2.0, -0.5, 0.5, 2.0]

    def graph():
        t = tf.constant(x)
        y = build(t)
        return y, tf.gradients(y, t)[0]

    with control_flow_v2(v2):
        value, slope = run(graph)
    wanted, wanted_slope = _by_hand(build, x)
    np.testing.assert_allclose(value, wanted, rtol=2e-6)
    np.testing.assert_allclose(slope, wanted_slope, rtol=5e-6)


def test_trains_inside_a_loop_of_steps(run):
    """A whole training step in a loop: the variable moves as it does step by step."""

    def step(w):
        return w - 0.1 * tf.gradients(tf.reduce_sum(gelu(w)), w)[0]

    looped = run(
        lambda: tf.while_loop(
            lambda i, w: i < 4,
            lambda i, w: (i + 1, step(w)),
            [tf.constant(0), tf.constant([1.0, -1.0])],
            back_prop=False,
        )[1]
    )
    w = np.array([1.0, -1.0])
    for _ in range(4):
        w = w - 0.1 * truth(w)[1]
    np.testing.assert_allclose(looped, w, rtol=1e-6)


def test_works_when_executing_eagerly(run):
    if not tf.executing_eagerly():  # TF 1: graph mode is all there is
        np.testing.assert_allclose(run(lambda: gelu([0.5])), truth([0.5])[0], rtol=1e-6)
        return
    x = tf.constant([0.5, -2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gelu(x)
    np.testing.assert_allclose(y.numpy(), truth([0.5, -2.0])[0], atol=2e-7)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), truth([0.5, -2.0])[1], atol=2e-7)


def test_the_vendors_object_raises_an_error_for_missing_names(run):
    np.testing.assert_allclose(run(lambda: npu_unary_ops.gelu(tf.constant([1.0]))), truth([1.0])[0], rtol=1e-6)
    with pytest.raises(AttributeError, match="npu_unary_ops has no operator 'prelu'.*p_relu"):
        npu_unary_ops.prelu


def test_other_types_are_refused(run):
    with pytest.raises(ValueError, match=r"int32, but must be a float tensor: write tf.cast\(x, tf.float32\)"):
        run(lambda: gelu(tf.constant([1])))
