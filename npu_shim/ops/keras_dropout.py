"""Keras Dropout layers of the whole process through npu_ops.dropout, until uninstall()."""

from __future__ import annotations

import functools
from typing import Any, Callable

from npu_shim import _patches, _tf, _tf_graph
from npu_shim.ops.dropout import dropout


def switch_keras_dropout() -> None:
    """Makes every Keras Dropout layer use npu_ops.dropout; npu_shim.uninstall() takes it back.

    A layer with a noise_shape, and any layer outside graph mode, is left to Keras.

    Raises:
        RuntimeError: this Keras has no graph mode (Keras 3, TF 2.16 and later).
    """
    if not _tf.has_keras_sessions():
        raise RuntimeError(
            f"npu_convert_dropout needs graph-mode Keras, which the Keras 3 of TensorFlow {_tf.tf.__version__} does not "
            f"have; the last TensorFlow that has it is {_tf.LAST_TF_WITH_ESTIMATOR}."
        )
    _patches.replace_attribute(_tf.v1.keras.layers.Dropout, "call", _make_call)


def dropout_call(self: Any, inputs: Any, training: Any = None) -> Any:
    """``Dropout.call`` by npu_ops.dropout.

    Args:
        self: the layer; its ``rate`` is the probability to DROP.
        inputs: float tensor.
        training: bool or tensor; Keras's learning phase when None.
    Returns:
        A tensor like inputs.
    """
    if training is None:
        training = _tf.keras_backend().learning_phase()
    return _tf_graph.smart_cond(
        training,
        lambda: dropout(inputs, keep_prob=1.0 - self.rate, seed=self.seed),
        lambda: _tf.tf.identity(inputs),
    )


def _make_call(original: Callable) -> Callable:
    @functools.wraps(original)
    def call(self: Any, inputs: Any, training: Any = None) -> Any:
        if self.noise_shape or _tf.tf.executing_eagerly():
            return original(self, inputs, training=training)
        return dropout_call(self, inputs, training)

    return call
