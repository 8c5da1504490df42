"""Forms of ops in the functions of an imported GraphDef, in graphs without shapes, and of frozen recurrent layers."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import function

from npu_shim._host import patches
from npu_shim.cpu_kernels import forms

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
    forms.use()
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
    np.testing.assert_allclose(run(graph_def), expected(), rtol=1e-5, atol=1e-5)
