"""Ops that CPUs refuse compute what one dense op with channels last computes, with gradients of both orders."""

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")
Tensors = Callable[..., Any]


pytestmark = pytest.mark.usefixtures("in_use")


class Case(NamedTuple):
    """The shapes of the inputs, the op under test, and the same from ops that the CPU computes."""

    shapes: Sequence[Sequence[int]]
    tested: Tensors
    reference: Tensors


def last(x: Any) -> Any:
    return tf.transpose(x, [0, *range(2, len(x.shape)), 1])


def first(x: Any) -> Any:
    rank = len(x.shape)
    return tf.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def dense(filters: Any, dilations: Sequence[int], groups: int = 1) -> Any:
    """Return the filter of a plain convolution: zeros between the rows, and for the channels of other groups."""
    shape = filters.shape.as_list()
    for axis, dilation in enumerate(dilations):
        rows = tf.split(filters, shape[axis], axis)
        gap = [tf.zeros_like(rows[0])] * (dilation - 1)
        parts = [rows[0]]
        for row in rows[1:]:
            parts += [*gap, row]
        filters = tf.concat(parts, axis)
    parts = tf.split(filters, groups, -1)
    nothing = tf.zeros_like(parts[0])
    return tf.concat(
        [tf.concat([part if at == place else nothing for at in range(groups)], -2) for place, part in enumerate(parts)],
        -1,
    )


def depthwise_as_groups(filters: Any) -> Any:
    height, width, channels, multiplier = filters.shape.as_list()
    return tf.reshape(filters, [height, width, 1, channels * multiplier])


def conv(op: str, rank: int, is_first: bool, strides: Sequence[int], dilations: Sequence[int], padding: str) -> Tensors:
    """Return the op in one of the two layouts."""

    def call(x: Any, w: Any) -> Any:
        around = (lambda each: [1, 1, *each]) if is_first else (lambda each: [1, *each, 1])
        name = {4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}[rank][is_first]
        extra = {"explicit_paddings": [0, 0, 0, 0, 1, 2, 3, 0]} if padding == "EXPLICIT" else {}
        return getattr(tf.raw_ops, op)(
            input=x,
            filter=w,
            strides=around(strides),
            padding=padding,
            data_format=name,
            dilations=around(dilations),
            **extra,
        )

    return call


def conv_case(
    shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    groups: int = 1,
    is_first: bool = True,
) -> Case:
    rank = len(shape)
    op = "Conv2D" if rank == 4 else "Conv3D"

    def reference(x: Any, w: Any) -> Any:
        x = last(x) if is_first else x
        if padding == "EXPLICIT":
            x = tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]])
        plain = "VALID" if padding == "EXPLICIT" else padding
        y = conv(op, rank, False, strides, [1] * (rank - 2), plain)(x, dense(w, dilations, groups))
        return first(y) if is_first else y

    return Case([shape, kernel], conv(op, rank, is_first, strides, dilations, padding), reference)


def depthwise_case(strides: Sequence[int], dilations: Sequence[int], padding: str, is_first: bool) -> Case:
    def reference(x: Any, w: Any) -> Any:
        x = last(x) if is_first else x
        y = conv("Conv2D", 4, False, strides, [1, 1], padding)(x, dense(depthwise_as_groups(w), dilations, 3))
        return first(y) if is_first else y

    shape = [2, 3, 9, 8] if is_first else [2, 9, 8, 3]
    return Case(
        [shape, [3, 2, 3, 2]], conv("DepthwiseConv2dNative", 4, is_first, strides, dilations, padding), reference
    )


def transposed_case(dilations: Sequence[int], rank: int = 4) -> Case:
    """A transposed convolution: the gradient with respect to the input."""
    op = "Conv2DBackpropInput" if rank == 4 else "Conv3DBackpropInputV2"
    strides = [1 if max(dilations) > 1 else 2] * (rank - 2)
    sizes = [2, 3, 8, 10, 6][:rank]

    def call(is_first: bool, w: Any, dy: Any, dilation: Sequence[int]) -> Any:
        around = (lambda each: [1, 1, *each]) if is_first else (lambda each: [1, *each, 1])
        return getattr(tf.raw_ops, op)(
            input_sizes=sizes if is_first else [sizes[0], *sizes[2:], sizes[1]],
            filter=w,
            out_backprop=dy,
            strides=around(strides),
            padding="SAME",
            data_format={4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}[rank][is_first],
            dilations=around(dilation),
        )

    made = [2, 4, *(size // strides[0] for size in sizes[2:])]
    return Case(
        [[*[3] * (rank - 2), 3, 4], made],
        lambda w, dy: call(True, w, dy, dilations),
        lambda w, dy: first(call(False, dense(w, dilations), last(dy), [1] * (rank - 2))),
    )


def pool_case(op: str, rank: int, padding: str) -> Case:
    def call(x: Any, is_first: bool) -> Any:
        name = {4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}[rank][is_first]
        window = [[1, *[3] * (rank - 2), 1], [1, 1, *[3] * (rank - 2)]][is_first]
        strides = [[1, *[2] * (rank - 2), 1], [1, 1, *[2] * (rank - 2)]][is_first]
        values = {"AvgPool": "value"}.get(op, "input")
        return getattr(tf.raw_ops, op)(**{values: x}, ksize=window, strides=strides, padding=padding, data_format=name)

    return Case([[2, 3, 7, 6, 5][:rank]], lambda x: call(x, True), lambda x: first(call(last(x), False)))


def norm_case(is_training: bool) -> Case:
    def call(x: Any, scale: Any, offset: Any, name: str) -> Any:
        mean = [] if is_training else [0.1, 0.2, 0.3]
        return v1.nn.fused_batch_norm(
            x, scale, offset, mean or None, mean or None, data_format=name, is_training=is_training
        )[0]

    return Case(
        [[4, 3, 5, 6], [3], [3]],
        lambda x, scale, offset: call(x, scale, offset, "NCHW"),
        lambda x, scale, offset: first(call(last(x), scale, offset, "NHWC")),
    )


def depth_case(op: str) -> Case:
    return Case(
        [[2, 8, 4, 6]],
        lambda x: getattr(tf.raw_ops, op)(input=x, block_size=2, data_format="NCHW"),
        lambda x: first(getattr(tf.raw_ops, op)(input=last(x), block_size=2, data_format="NHWC")),
    )


def block(is_first: bool) -> Tensors:
    """A residual block."""

    def call(x: Any, one: Any, two: Any, scale: Any) -> Any:
        name = "NCHW" if is_first else "NHWC"
        pair = [1, 1, 2, 2] if is_first else [1, 2, 2, 1]
        y = conv("Conv2D", 4, is_first, [1, 1], [1, 1], "SAME")(x, one)
        y = v1.nn.fused_batch_norm(y, scale, scale, data_format=name)[0]
        y = tf.nn.relu(y)
        y = tf.nn.bias_add(conv("Conv2D", 4, is_first, [1, 1], [1, 1], "SAME")(y, two), scale, data_format=name)
        y = tf.nn.relu6(x + tf.sigmoid(y) * 2.0)
        return v1.nn.max_pool(y, pair, pair, "SAME", data_format=name)

    return call


CASES = {
    "conv2d": conv_case([2, 4, 8, 7], [3, 3, 4, 5], [1, 1], [1, 1], "SAME"),
    "conv2d, unequal strides": conv_case([2, 4, 8, 7], [3, 2, 4, 5], [2, 1], [1, 1], "VALID"),
    "conv2d, explicit padding": conv_case([2, 4, 8, 7], [3, 2, 4, 5], [2, 1], [1, 1], "EXPLICIT"),
    "conv2d, dilated": conv_case([2, 4, 9, 8], [3, 3, 4, 5], [1, 1], [2, 3], "SAME"),
    "conv2d, dilated, channels last": conv_case([2, 9, 8, 4], [3, 3, 4, 5], [1, 1], [2, 2], "VALID", is_first=False),
    "conv2d, dilated with strides": conv_case([2, 4, 13, 14], [3, 3, 4, 5], [2, 3], [4, 2], "SAME"),
    "conv2d, dilated with explicit padding": conv_case([2, 4, 9, 8], [3, 3, 4, 5], [1, 2], [2, 2], "EXPLICIT"),
    "conv2d, groups": conv_case([2, 6, 5, 5], [3, 3, 2, 9], [1, 1], [1, 1], "SAME", groups=3),
    "conv2d, groups, channels last": conv_case([2, 5, 5, 6], [3, 3, 2, 9], [2, 2], [1, 1], "SAME", 3, False),
    "conv2d, groups of one": conv_case([2, 4, 5, 6], [3, 3, 1, 8], [1, 2], [1, 1], "SAME", groups=4),
    "conv2d, groups, dilated": conv_case([2, 6, 8, 8], [3, 3, 3, 4], [1, 1], [2, 2], "SAME", groups=2),
    "conv3d": conv_case([2, 3, 5, 6, 4], [2, 3, 2, 3, 4], [1, 2, 1], [1, 1, 1], "SAME"),
    "conv3d, dilated": conv_case([1, 2, 7, 6, 8], [2, 3, 2, 2, 3], [1, 1, 1], [2, 1, 3], "SAME"),
    "depthwise": depthwise_case([1, 1], [1, 1], "SAME", True),
    "depthwise, unequal strides": depthwise_case([2, 1], [1, 1], "SAME", True),
    "depthwise, unequal strides, channels last": depthwise_case([2, 3], [1, 1], "VALID", False),
    "depthwise, dilated": depthwise_case([1, 1], [2, 3], "SAME", True),
    "transposed": transposed_case([1, 1]),
    "transposed, dilated": transposed_case([2, 2]),
    "transposed in three dimensions": transposed_case([1, 1, 1], 5),
    "max pool": pool_case("MaxPool", 4, "SAME"),
    "average pool": pool_case("AvgPool", 4, "VALID"),
    "max pool in three dimensions": pool_case("MaxPool3D", 5, "VALID"),
    "average pool in three dimensions": pool_case("AvgPool3D", 5, "SAME"),
    "batch norm": norm_case(True),
    "batch norm, inference": norm_case(False),
    "space to depth": depth_case("SpaceToDepth"),
    "depth to space": depth_case("DepthToSpace"),
    "residual block": Case(
        [[2, 4, 6, 6], [3, 3, 4, 4], [3, 3, 4, 4], [4]],
        block(True),
        lambda x, *rest: first(block(False)(last(x), *rest)),
    ),
}
# Graphs and functions differ in who makes the gradients, which the forms do not ask. By day, TensorFlow 1 has the graphs
# and TensorFlow 2 the functions.
MODES = [
    pytest.param("graph", marks=[pytest.mark.nightly] * (not IS_1)),
    *["function"] * (not IS_1),
    pytest.param("eager", marks=pytest.mark.nightly),
    pytest.param("loop", marks=pytest.mark.nightly),
]
# The ways in which a form is chosen and differentiated, eagerly: layout, dilation, groups, a list of outputs, a pool.
EAGER = ["conv2d", "conv2d, dilated, channels last", "conv2d, groups", "batch norm", "max pool"]


def with_gradients(function: Tensors, values: Sequence[Any]) -> list[Any]:
    """Return a value, its gradients, and those of a combination of these."""
    with tf.GradientTape() as outer:
        outer.watch(values)
        with tf.GradientTape() as inner:
            inner.watch(values)
            value = function(*values)
            total = tf.reduce_mean(value * tf.cos(value))
        slopes = inner.gradient(total, values)
        total = tf.add_n([tf.reduce_mean(each * tf.sin(each)) for each in slopes])
    return [value, *slopes, *outer.gradient(total, values, unconnected_gradients=tf.UnconnectedGradients.ZERO)]


def in_graph(function: Tensors, values: Sequence[Any]) -> list[Any]:
    value = function(*values)
    slopes = tf.gradients(tf.reduce_mean(value * tf.cos(value)), values)
    total = tf.add_n([tf.reduce_mean(each * tf.sin(each)) for each in slopes])
    return [value, *slopes, *tf.gradients(total, values, unconnected_gradients="zero")]


def looped(function: Tensors) -> Tensors:
    def call(*values: Any) -> Any:
        shape = [2, *[None] * (len(values[0].shape) - 1)]
        _, value = v1.while_loop(
            lambda i, _: i < 1,
            lambda i, _: [i + 1, function(*values)],
            [0, tf.zeros([2, *[1] * (len(shape) - 1)])],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)],
        )
        return value

    return call


def run(mode: str, function: Tensors, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    if mode in ("graph", "loop"):
        with tf.Graph().as_default(), v1.Session() as session:
            values = [tf.constant(each) for each in arrays]
            if mode == "loop":
                value = looped(function)(*values)
                made = [value, *tf.gradients(tf.reduce_mean(value * tf.cos(value)), values)]
            else:
                made = in_graph(function, values)
            return list(session.run(made))
    with context.eager_mode():
        values = [tf.constant(each) for each in arrays]

        def call(*each: Any) -> list[Any]:
            return with_gradients(function, list(each))

        return [each.numpy() for each in (tf.function(call) if mode == "function" else call)(*values)]


def inputs(name: str) -> list[np.ndarray]:
    random = np.random.RandomState(3)
    return [random.uniform(-1, 1, shape).astype(np.float32) for shape in CASES[name].shapes]


@functools.lru_cache(maxsize=None)
def expected(name: str) -> list[np.ndarray]:
    return run("graph", CASES[name].reference, inputs(name))


def check(name: str, mode: str) -> None:
    found, wanted = run(mode, CASES[name].tested, inputs(name)), expected(name)
    tolerance = 1e-4 if "norm" in name else 1e-5  # of gradients of a cosine, of the second order
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6, atol=1e-6 * np.abs(wanted[0]).max())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", MODES)
def test_values_and_gradients(name: str, mode: str) -> None:
    check(name, mode)


@pytest.mark.parametrize("name", EAGER)
def test_eager_values_and_gradients(name: str) -> None:
    check(name, "eager")
