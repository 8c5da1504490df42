"""The parametric rectified linear unit as a Keras layer."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Constraint, Initializer, Regularizer, Tensor, TensorShape
from npu_shim.ops.prelu import p_relu


class PReLU(tf.keras.layers.Layer):
    """Return x where it is positive, else alpha x, with a trained alpha for each place of an example.

    Args:
        alpha_initializer: initializer of alpha.
        alpha_regularizer: its regularizer, or None.
        alpha_constraint: its constraint, or None.
        shared_axes: list of the axes along which alpha has one value, as [1, 2] for an alpha of each channel.
        kwargs: arguments of a Keras layer.
    """

    def __init__(
        self,
        alpha_initializer: Initializer = "zeros",
        alpha_regularizer: Regularizer | None = None,
        alpha_constraint: Constraint | None = None,
        shared_axes: Sequence[int] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.alpha_initializer = tf.keras.initializers.get(alpha_initializer)
        self.alpha_regularizer = tf.keras.regularizers.get(alpha_regularizer)
        self.alpha_constraint = tf.keras.constraints.get(alpha_constraint)
        self.shared_axes = shared_axes

    def build(self, input_shape: TensorShape) -> None:
        """Make alpha: the sizes of an example, 1 in shared axes, and [1] if all are 1."""
        sizes = tf.TensorShape(input_shape).as_list()[1:]
        for axis in self.shared_axes or ():
            sizes[axis - 1] = 1
        if None in sizes:
            raise ValueError(
                f"PReLU: the input has shape {input_shape}, but alpha needs its sizes. Set them, or add their axes to "
                "shared_axes."
            )
        self.alpha = self.add_weight(
            name="alpha",
            shape=[1] if set(sizes) == {1} else sizes,
            initializer=self.alpha_initializer,
            regularizer=self.alpha_regularizer,
            constraint=self.alpha_constraint,
        )
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activation of the inputs, with their shape and type."""
        return p_relu(inputs, tf.convert_to_tensor(self.alpha))
