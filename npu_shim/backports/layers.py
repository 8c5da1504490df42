"""Keras layers that TensorFlow 2.6 lacks."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import (
    Constraint,
    Initializer,
    JsonObject,
    Regularizer,
    Structure,
    Tensor,
    TensorShape,
)


@tf.keras.utils.register_keras_serializable("npu_shim")
class GroupNormalization(tf.keras.layers.Layer):
    """Return gamma (x - mean) / sqrt(variance + epsilon) + beta.

    Each example has a mean and a biased variance for each group of adjacent channels, over all other axes.
    Source: arXiv:1803.08494, Group Normalization.

    Args:
        groups: the number of groups, which divides the number of channels; -1 makes a group of each channel.
        axis: the axis of the channels.
        epsilon: the number that is added to the variance.
        center: True if there is a beta of each channel.
        scale: True if there is a gamma of each channel.
        beta_initializer, gamma_initializer: the first values of the two variables.
        beta_regularizer, gamma_regularizer: their regularizers, or None.
        beta_constraint, gamma_constraint: their constraints, or None.
        kwargs: arguments of a Keras layer.
    Raises:
        ValueError: when it is built, if the number of channels is unknown or no multiple of groups.
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Initializer = "zeros",
        gamma_initializer: Initializer = "ones",
        beta_regularizer: Regularizer | None = None,
        gamma_regularizer: Regularizer | None = None,
        beta_constraint: Constraint | None = None,
        gamma_constraint: Constraint | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.groups = groups
        self.axis = axis
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = tf.keras.initializers.get(beta_initializer)
        self.gamma_initializer = tf.keras.initializers.get(gamma_initializer)
        self.beta_regularizer = tf.keras.regularizers.get(beta_regularizer)
        self.gamma_regularizer = tf.keras.regularizers.get(gamma_regularizer)
        self.beta_constraint = tf.keras.constraints.get(beta_constraint)
        self.gamma_constraint = tf.keras.constraints.get(gamma_constraint)

    def build(self, input_shape: TensorShape) -> None:
        """Make gamma and beta, a number for each channel."""
        channels = tf.TensorShape(input_shape).as_list()[self.axis]
        if channels is None:
            raise ValueError(
                f"GroupNormalization: axis {self.axis} of {input_shape} has no static size. Give its size."
            )
        if self.groups == -1:
            self.groups = channels
        if channels % self.groups:
            raise ValueError(f"GroupNormalization: groups={self.groups} does not divide the {channels} channels.")
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight(
                name="gamma",
                shape=(channels,),
                initializer=self.gamma_initializer,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )
        if self.center:
            self.beta = self.add_weight(
                name="beta",
                shape=(channels,),
                initializer=self.beta_initializer,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, with their shape and type.

        Args:
            inputs: a tensor of real numbers whose first axis is that of the examples.
        """
        static, dynamic = inputs.shape.as_list(), tf.shape(inputs)
        axis = self.axis % len(static)
        sizes = [dynamic[place] if size is None else size for place, size in enumerate(static)]
        grouped_sizes = [*sizes[:axis], self.groups, static[axis] // self.groups, *sizes[axis + 1 :]]
        grouped = tf.reshape(inputs, grouped_sizes)
        mean, variance = tf.nn.moments(grouped, [a for a in range(1, len(static) + 1) if a != axis], keepdims=True)
        of_channels = [1] * (len(static) + 1)
        of_channels[axis : axis + 2] = grouped_sizes[axis : axis + 2]
        gamma, beta = (
            None if weight is None else tf.cast(tf.reshape(weight, of_channels), inputs.dtype)
            for weight in (self.gamma, self.beta)
        )
        return tf.reshape(tf.nn.batch_normalization(grouped, mean, variance, beta, gamma, self.epsilon), sizes)

    def compute_output_shape(self, input_shape: TensorShape) -> TensorShape:
        """Return the shape of the inputs."""
        return input_shape

    def get_config(self) -> JsonObject:
        """Return the arguments of the layer."""
        config = {name: getattr(self, name) for name in ("groups", "axis", "epsilon", "center", "scale")}
        for kind in ("initializer", "regularizer", "constraint"):
            serialize = getattr(tf.keras, f"{kind}s").serialize
            for name in (f"beta_{kind}", f"gamma_{kind}"):
                config[name] = serialize(getattr(self, name))
        return {**super().get_config(), **config}


@tf.keras.utils.register_keras_serializable("npu_shim")
class UnitNormalization(tf.keras.layers.Layer):
    """Return x / sqrt(max(sum(x^2), 1e-12)), whose squares add up to 1.

    Args:
        axis: the axis, or the list of axes, along which the squares are added.
        kwargs: arguments of a Keras layer.
    """

    def __init__(self, axis: int | list[int] = -1, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis

    def call(self, inputs: Tensor) -> Tensor:
        """Return the normalized inputs, with their shape and type."""
        return tf.nn.l2_normalize(inputs, axis=self.axis)

    def compute_output_shape(self, input_shape: TensorShape) -> TensorShape:
        """Return the shape of the inputs."""
        return input_shape

    def get_config(self) -> JsonObject:
        """Return the arguments of the layer."""
        return {**super().get_config(), "axis": self.axis}


@tf.keras.utils.register_keras_serializable("npu_shim")
class Identity(tf.keras.layers.Layer):
    """Return the inputs, a tensor or a nested structure of tensors."""

    def call(self, inputs: Structure) -> Structure:
        """Return the inputs."""
        return tf.nest.map_structure(tf.identity, inputs)
