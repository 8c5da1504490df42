"""Variables as Keras 3 makes them."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Initializer, TensorShape, Variable as _Variable

_INT = ("int", int)  # Keras 3 takes them for int64


def Variable(
    initializer: Initializer,
    shape: TensorShape | None = None,
    dtype: DType | None = None,
    trainable: bool = True,
    autocast: bool = True,
    aggregation: str | None = None,
    name: str | None = None,
) -> _Variable:
    """Return a tf.Variable with the arguments of keras.Variable. Its value is read by value(), not by value.

    Args:
        initializer: the first value, an initializer of Keras or its name.
        shape: the shape; needed for an initializer, and else that of the value.
        dtype: the type; None is that of a tensor, and else floatx.
        trainable: True if layers that have the variable train it.
        autocast, aggregation: have no effect.
        name: the name of the variable.
    Raises:
        ValueError: if an initializer has no shape.
    """
    if dtype in _INT:
        dtype = "int64"
    if isinstance(initializer, str) or callable(initializer):
        if shape is None:
            raise ValueError("Variable: an initializer needs a shape. Give shape.")
        initializer = tf.keras.initializers.get(initializer)(shape, dtype or tf.keras.backend.floatx())
    value = tf.cast(initializer, dtype or getattr(initializer, "dtype", None) or tf.keras.backend.floatx())
    return tf.Variable(value, trainable=trainable, name=name)
