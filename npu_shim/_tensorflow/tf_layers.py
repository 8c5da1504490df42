"""The base class of TensorFlow 1's layers, also for TensorFlow with Keras 3, which lacks it."""

from __future__ import annotations

import re
from typing import Sequence

import tensorflow as tf

from npu_shim._tensorflow.types import DType, Initializer, Result, Structure, Variable

v1 = tf.compat.v1


class _Layer(tf.Module):
    """The part of tf.compat.v1.layers.Layer that layers of npu_shim use."""

    def __init__(self, dtype: DType = tf.float32, name: str | None = None) -> None:
        super().__init__(name=re.sub(r"[^A-Za-z0-9_]", "_", name) if name else None)
        self.built = False
        self.dtype = tf.as_dtype(dtype)
        self._own: list[Variable] = []

    def add_weight(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DType = None,
        initializer: Initializer = None,
        trainable: bool = True,
    ) -> Variable:
        """Return a new variable of the layer."""
        dtype = tf.as_dtype(dtype or self.dtype)
        if tf.executing_eagerly() or tf.inside_function():
            with tf.init_scope():
                value = initializer(list(shape), dtype=dtype)
                variable = tf.Variable(value, trainable=trainable, name=name)
        else:
            variable = v1.get_variable(name, shape, dtype, initializer=initializer, trainable=trainable)
        self._own.append(variable)
        return variable

    @property
    def weights(self) -> list[Variable]:
        """The variables of the layer, those that are not trained last."""
        return sorted(self._own, key=lambda variable: not variable.trainable)

    def build(self, input_shape: tf.TensorShape) -> None:
        """Note that the variables are there."""
        self.built = True

    def __call__(self, inputs: Structure, *args: object, **kwargs: object) -> Result:
        inputs = tf.convert_to_tensor(inputs)
        with v1.variable_scope(None, default_name=self.name) if not self.built else tf.name_scope(self.name):
            if not self.built:
                self.build(inputs.shape)
            return self.call(inputs, *args, **kwargs)


def layer_class() -> type[_Layer]:
    """Return tf.compat.v1.layers.Layer, or a class with the part of it that npu_shim's layers use."""
    try:
        return v1.layers.Layer
    except AttributeError:  # Keras 3
        return _Layer
