"""Layers and losses of the networks, and their registry."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

tf1 = tf.compat.v1
Tensor = Any
Active = Callable[[Tensor], Tensor]
Build = Callable[..., Tensor]
NETWORKS: dict[str, tuple[Build, str]] = {}


def network(optimizer: str = "momentum") -> Callable[[Build], Build]:
    """Register a function as a network that is trained with an optimizer."""

    def register(build: Build) -> Build:
        NETWORKS[build.__name__] = build, optimizer
        return build

    return register


def given(*shape: int, type: Any = tf.float32) -> Tensor:
    """Return a placeholder."""
    return tf1.placeholder(type, list(shape))


def weights(*shape: int, trainable: bool = True) -> Tensor:
    """Return a new variable; a template of TensorFlow calls for the same ones again."""
    with tf1.variable_scope(None, default_name="layer"):
        return tf1.get_variable("weights", list(shape), initializer=tf1.zeros_initializer(), trainable=trainable)


def rows(table: Tensor, ids: Tensor) -> Tensor:
    """Return rows of a table. Their gradient has all rows, as that of a script of MindSpore that asks for no others."""

    @tf.custom_gradient
    def gathered(whole: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        return tf.gather(whole, ids), lambda grad: tf.math.unsorted_segment_sum(grad, ids, int(whole.shape[0]))

    return gathered(table)


def normed(x: Tensor, active: Active | None = tf.nn.relu) -> Tensor:
    """Return a batch normalization with its activation."""
    depth = int(x.shape[-1])
    scale, shift = (weights(depth) for _ in range(2))
    means, spreads = (weights(depth, trainable=False) for _ in range(2))
    x, mean, spread, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=shift, mean=tf.constant([]), variance=tf.constant([]), is_training=True
    )
    for kept, now in ((means, mean), (spreads, spread)):
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_sub(kept, (kept - now) * 0.01))
    return active(x) if active else x


def same(x: Tensor) -> Tensor:
    """Return the tensor."""
    return x


def conv(
    x: Tensor,
    filters: int,
    size: int | tuple[int, int] = 3,
    stride: int = 1,
    active: Active | None = tf.nn.relu,
    norm: bool = True,
    groups: int = 1,
    rate: int = 1,
    padding: str = "SAME",
) -> Tensor:
    """Return a convolution with batch normalization or a bias, and an activation. A rank of 5 makes it a 3D one."""
    spatial = x.shape.rank - 2
    sizes = list(size) if isinstance(size, tuple) else [size] * spatial
    kernel = weights(*sizes, int(x.shape[-1]) // groups, filters)
    x = tf.nn.convolution(x, kernel, strides=[stride] * spatial, padding=padding, dilations=[rate] * spatial)
    if norm:
        return normed(x, active)
    x = tf.nn.bias_add(x, weights(filters))
    return active(x) if active else x


def depthwise(x: Tensor, size: int = 3, stride: int = 1, active: Active | None = tf.nn.relu) -> Tensor:
    """Return a depthwise convolution with batch normalization."""
    return normed(
        tf.nn.depthwise_conv2d(x, weights(size, size, int(x.shape[-1]), 1), [1, stride, stride, 1], "SAME"), active
    )


def up(x: Tensor, filters: int, size: int = 2, stride: int = 2, active: Active = same, norm: bool = True) -> Tensor:
    """Return a transposed convolution."""
    batch, height, width, depth = x.shape.as_list()
    shape = [batch, height * stride, width * stride, filters]
    x = tf.nn.conv2d_transpose(x, weights(size, size, filters, depth), shape, stride, "SAME")
    return normed(x, active) if norm else active(tf.nn.bias_add(x, weights(filters)))


def pool(x: Tensor, size: int = 2, stride: int = 2, padding: str = "SAME") -> Tensor:
    """Return a maximum over windows."""
    return tf.nn.max_pool2d(x, size, stride, padding)


def dense(x: Tensor, units: int, active: Active | None = None) -> Tensor:
    """Return a fully connected layer over the last dimension."""
    depth = int(x.shape[-1])
    flat = tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, depth]), weights(depth, units)), weights(units))
    flat = active(flat) if active else flat
    return tf.reshape(flat, [*x.shape.as_list()[:-1], units]) if x.shape.rank > 2 else flat


def flat(x: Tensor) -> Tensor:
    """Return the examples as vectors."""
    return tf.reshape(x, [int(x.shape[0]), -1])


def mean(x: Tensor) -> Tensor:
    """Return the mean over the space."""
    return tf.reduce_mean(x, list(range(1, x.shape.rank - 1)))


def resized(x: Tensor, like: Tensor) -> Tensor:
    """Return the images in the height and width of others."""
    return tf1.image.resize_bilinear(x, like.shape.as_list()[1:3])


def classes(x: Tensor, number: int) -> Tensor:
    """Return the loss of a classification by logits, which a dense layer makes from vectors."""
    if int(x.shape[-1]) != number or x.shape.rank == 2:
        x = dense(x, number)
    labels = given(*x.shape.as_list()[:-1], type=tf.int32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))


def near(x: Tensor) -> Tensor:
    """Return the mean square of the distance to an example."""
    return tf.reduce_mean(tf.math.squared_difference(x, given(*x.shape.as_list())))


def decided(x: Tensor, real: bool) -> Tensor:
    """Return the loss of a discriminator."""
    labels = tf.ones_like(x) if real else tf.zeros_like(x)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x))


def clicked(logits: Tensor) -> Tensor:
    """Return the loss of a prediction of clicks."""
    labels = given(*logits.shape.as_list())
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
