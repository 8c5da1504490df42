"""Ops without a kernel for a half type compute in float32 and round, with all attributes and gradients."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from npu_shim._tensorflow import tf_kernels
from npu_shim.ops.cpu_kernels import halves

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")
pytestmark = pytest.mark.usefixtures("in_use")


def conv(name: str, *strides: int, **attributes: Any) -> Callable[..., Any]:
    return lambda x, w: getattr(tf.raw_ops, name)(input=x, filter=w, strides=strides, padding="SAME", **attributes)


CASES: dict[str, tuple[list[list[int]], Callable[..., Any]]] = {
    "conv2d": ([[2, 6, 6, 2], [3, 3, 2, 4]], conv("Conv2D", 1, 1, 1, 1)),
    "conv2d, channels first": ([[2, 2, 6, 6], [3, 3, 2, 4]], conv("Conv2D", 1, 1, 2, 2, data_format="NCHW")),
    "conv3d, channels first": ([[1, 2, 4, 5, 4], [2, 2, 2, 2, 3]], conv("Conv3D", *[1] * 5, data_format="NCDHW")),
    "depthwise": ([[2, 6, 6, 2], [3, 3, 2, 2]], conv("DepthwiseConv2dNative", 1, 1, 1, 1)),
    "average pool": ([[2, 6, 6, 2]], lambda x: tf.nn.avg_pool2d(x, 2, 2, "SAME")),
    "max pool in three dimensions": ([[1, 4, 4, 4, 2]], lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME")),
    "erf": ([[3, 4]], tf.math.erf),
    "lrn": ([[2, 3, 3, 4]], tf.nn.lrn),
    "einsum": ([[2, 3], [3, 4]], lambda x, y: tf.einsum("ij,jk->ik", x, y)),
    "cross entropy": (
        [[3, 4]],
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3, 1], logits=x),
    ),
    "batch norm": (
        [[4, 3, 3, 2]],
        lambda x: v1.nn.fused_batch_norm(x, tf.ones(2), tf.zeros(2))[0],
    ),
    "lgamma": ([[3, 4]], lambda x: tf.math.lgamma(x + 3)),
}


def run(function: Callable[..., Any], arrays: list[np.ndarray], dtype: Any, is_eager: bool) -> list[np.ndarray]:
    """Return a value and its gradients, as float32."""
    with contextmanager(is_eager):
        values = [tf.cast(tf.constant(each), dtype) for each in arrays]
        if is_eager:
            with tf.GradientTape() as tape:
                tape.watch(values)
                value = function(*values)
            made = [value, *tape.gradient(value, values, weights(value))]
            assert {each.dtype for each in made} == {dtype}
            return [tf.cast(each, tf.float32).numpy() for each in made]
        value = function(*values)
        made = [value, *tf.gradients(value, values, weights(value))]
        assert {each.dtype for each in made} == {dtype}
        with v1.Session() as session:
            return list(session.run([tf.cast(each, tf.float32) for each in made]))


def weights(value: Any) -> Any:
    """Return gradients for the elements of a value that are exact in both types."""
    shape = value.shape.as_list()
    return tf.cast(tf.constant(np.random.RandomState(6).randint(-4, 5, shape) / 4), value.dtype)


def contextmanager(is_eager: bool) -> Any:
    return context.eager_mode() if is_eager else tf.Graph().as_default()


def inputs(name: str) -> list[np.ndarray]:
    random = np.random.RandomState(5)
    return [np.float32(random.randint(-8, 9, shape) / 8) for shape in CASES[name][0]]  # exact in both types


@functools.lru_cache(maxsize=None)
def in_float32(name: str) -> list[np.ndarray]:
    return run(CASES[name][1], inputs(name), tf.float32, False)


@pytest.mark.parametrize("is_eager", [False] + [pytest.param(True, marks=pytest.mark.once)] * (not IS_1))
@pytest.mark.parametrize("dtype", halves.HALVES, ids=lambda each: each.name)
@pytest.mark.parametrize("name", CASES)
def test_rounded(name: str, dtype: Any, is_eager: bool) -> None:
    found, wanted = run(CASES[name][1], inputs(name), dtype, is_eager), in_float32(name)
    step = 2.0**-7 if dtype == tf.bfloat16 else 2.0**-10
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=2 * step, atol=2 * step * np.abs(other).max())


def test_ops_with_kernels_stay() -> None:
    missing = tf_kernels.dtypes_without_cpu_kernel(halves.HALVES)
    assert tf.float16 in missing["MaxPool3D"]["T"]
    assert "MatMul" not in missing and "Variable" not in missing and "ResourceApplyProximalAdagrad" not in missing
    with tf.Graph().as_default() as graph:
        tf.matmul(tf.zeros([2, 2], tf.float16), tf.zeros([2, 2], tf.float16))
        tf.math.erf(tf.zeros([2]))
    assert not [op.type for op in graph.get_operations() if op.type == "Cast"]


def test_imported_nodes_are_rounded() -> None:
    with tf.Graph().as_default() as graph:
        with graph.as_default():
            value = v1.placeholder(tf.bfloat16, [2, 3], name="x")
        lines = graph.as_graph_def()
    node = lines.node.add(name="y", op="Digamma", input=["x"])
    node.attr["T"].type = tf.bfloat16.as_datatype_enum
    with tf.Graph().as_default():
        value = v1.placeholder(tf.bfloat16, [2, 3])
        (made,) = tf.import_graph_def(lines, {"x:0": value}, ["y:0"])
        with v1.Session() as session:
            found = session.run(tf.cast(made, tf.float32), {value: np.full([2, 3], 2.0)})
    np.testing.assert_allclose(found, 0.42278434, rtol=2.0**-8)
