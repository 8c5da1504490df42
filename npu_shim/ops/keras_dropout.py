"""Run the Keras Dropout layers of this process through npu_ops.dropout, until npu_shim.uninstall()."""

from __future__ import annotations

import functools
from typing import Callable

from npu_shim._host import host_device
from npu_shim._tensorflow import patches, tf_api, tf_graph
from npu_shim._tensorflow.types import KerasLayer, Tensor
from npu_shim.ops.dropout import dropout


def switch_keras_dropout() -> None:
    """Make every Keras Dropout layer use npu_ops.dropout; npu_shim.uninstall() restores Keras.

    A layer with a noise shape, as SpatialDropout1D, and a layer in eager mode still run Keras' own code.

    Raises:
        RuntimeError: if this Keras has no graph mode (Keras 3, TF 2.16 and later).
    """
    if not tf_api.has_keras_sessions():
        raise RuntimeError(
            f"npu_convert_dropout needs graph-mode Keras, which the Keras 3 of TensorFlow {tf_api.tf.__version__} does "
            f"not have; the last TensorFlow that has it is {tf_api.LAST_TF_WITH_ESTIMATOR}."
        )
    patches.replace_attribute(tf_api.v1.keras.layers.Dropout, "call", _make_call)


def dropout_call(self: KerasLayer, inputs: Tensor, training: bool | Tensor | None = None) -> Tensor:
    """Run ``Dropout.call`` through npu_ops.dropout.

    Args:
        self: the layer; its ``rate`` is the probability to DROP.
        inputs: float tensor.
        training: bool or bool tensor; Keras's learning phase if None.
    Returns:
        A tensor with the shape and type of inputs.
    """
    if training is None:
        training = tf_api.keras_backend().learning_phase()
    return tf_graph.smart_cond(
        training,
        lambda: host_device.vendor_object_or(dropout, "npu_bridge.estimator.npu_ops")(
            inputs, keep_prob=1.0 - self.rate, seed=self.seed
        ),
        lambda: tf_api.tf.identity(inputs),
    )


def _make_call(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    layers = tf_api.v1.keras.layers
    spatial = (layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D)  # they have a noise shape

    @functools.wraps(original)
    def call(self: KerasLayer, inputs: Tensor, training: bool | Tensor | None = None) -> Tensor:
        if self.noise_shape or isinstance(self, spatial) or tf_api.tf.executing_eagerly():
            return original(self, inputs, training=training)
        return dropout_call(self, inputs, training)

    return call
