"""Forms of ops in the functions of an imported GraphDef, in graphs without shapes, and of frozen recurrent layers."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import function

from npu_shim._tensorflow import patches
from npu_shim.ops.cpu_kernels import forms

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")
RANDOM = np.random.RandomState(1)
IMAGES = RANDOM.uniform(-1, 1, (2, 4, 6, 6)).astype(np.float32)
WEIGHTS = RANDOM.uniform(-1, 1, (3, 3, 2, 4)).astype(np.float32)
pytestmark = pytest.mark.usefixtures("in_use")


def layers(images: Any) -> Any:
    """Return what a convolution in two groups, batch norm and a pool give, with channels first."""
    y = tf.nn.conv2d(images, tf.constant(WEIGHTS), [1, 1, 1, 1], "SAME", data_format="NCHW")
    y, mean, _ = v1.nn.fused_batch_norm(y, np.ones(4, np.float32), np.zeros(4, np.float32), data_format="NCHW")
    return v1.nn.max_pool(y, [1, 1, 2, 2], [1, 1, 1, 1], "SAME", data_format="NCHW") + mean[:, tf.newaxis, tf.newaxis]


def as_written(build: Callable[[], Any]) -> Any:
    """Return the GraphDef that a host of GPUs writes, without forms."""
    patches.restore_all()
    with tf.Graph().as_default() as graph:
        build()
    forms.use_cpu_forms()
    return graph.as_graph_def()


def in_function() -> Any:
    @function.Defun(tf.float32, func_name="layers_of_a_function")
    def call(images: Any) -> Any:
        return layers(images)

    return tf.identity(call(v1.placeholder(tf.float32, IMAGES.shape, "images")), name="result")


def in_loop() -> Any:
    images = v1.placeholder(tf.float32, IMAGES.shape, "images")
    _, result = tf.while_loop(lambda i, _: i < 1, lambda i, x: (i + 1, layers(x)), [0, images])
    return tf.identity(result, name="result")


def run(graph_def: Any) -> np.ndarray:
    with tf.Graph().as_default(), v1.Session() as session:
        for number in range(2):  # TensorFlow refuses two functions of one name that differ
            tf.import_graph_def(graph_def, name=f"copy_{number}")
        return session.run("copy_1/result:0", {"copy_1/images:0": IMAGES})


def expected() -> np.ndarray:
    with tf.Graph().as_default(), v1.Session() as session:
        return session.run(layers(tf.constant(IMAGES)))


@pytest.mark.parametrize("build", [in_function, in_loop])
def test_functions_of_an_imported_graph(build: Callable[[], Any]) -> None:
    graph_def = as_written(build)
    assert IS_1 or graph_def.library.function
    bodies = [graph_def.node, *(each.node_def for each in graph_def.library.function)]
    (pool,) = [node for nodes in bodies for node in nodes if node.op == "MaxPool"]
    del pool.attr["T"]  # SavedModels leave default values out
    np.testing.assert_allclose(run(graph_def), expected(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dilation", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("data_format", ["NCHW", pytest.param("NHWC", marks=pytest.mark.once)])
def test_groups_of_an_imported_graph_without_shapes(data_format: str, dilation: int) -> None:
    """Its gradients, too, with respect to the input, to the filter, and of the second order."""
    images = IMAGES if data_format == "NCHW" else np.moveaxis(IMAGES, 1, -1)
    around = [1, dilation, dilation]
    dilations = [1, *around] if data_format == "NCHW" else [*around, 1]

    def build(x: Any, w: Any) -> list[Any]:
        y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format=data_format, dilations=dilations)
        first = tf.gradients(y**2, [x, w])
        return [
            tf.identity(each, name=f"result_{i}") for i, each in enumerate([y, *first, *tf.gradients(first[0] ** 2, w)])
        ]

    graph_def = as_written(lambda: build(v1.placeholder(tf.float32, name="x"), v1.placeholder(tf.float32, name="w")))
    with tf.Graph().as_default(), v1.Session() as session:
        names = [f"result_{i}:0" for i in range(4)]
        x, w, *found = tf.import_graph_def(graph_def, return_elements=["x:0", "w:0", *names])
        found = session.run(found, {x: images, w: WEIGHTS})
        wanted = session.run(build(tf.constant(images), tf.constant(WEIGHTS)))
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())


def test_a_function_that_nobody_calls_may_have_a_layer_of_unknown_size() -> None:
    """Keras saves one for GPUs beside that for CPUs."""

    def build() -> Any:
        @function.Defun(*[tf.float32] * 4, func_name="for_gpus")
        def layer(*given: Any) -> Any:
            names = ["input", "input_h", "input_c", "params"]
            return tf.raw_ops.CudnnRNN(**dict(zip(names, given))).output

        layer.add_to_graph(v1.get_default_graph())
        tf.identity(v1.placeholder(tf.float32, IMAGES.shape, "images"), name="result")

    graph_def = as_written(build)
    assert [each.signature.name for each in graph_def.library.function] == ["for_gpus"]
    np.testing.assert_array_equal(run(graph_def), IMAGES)


def test_an_imported_op_of_gpus_is_one_clear_error() -> None:
    graph_def = v1.GraphDef()
    graph_def.node.add(name="x", op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
    node = graph_def.node.add(name="sum", op="NcclAllReduce", input=["x"])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node.attr["reduction"].s, node.attr["num_devices"].i, node.attr["shared_name"].s = b"sum", 2, b"s"
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="NcclAllReduce runs on GPUs only. Use one"):
        v1.import_graph_def(graph_def)
