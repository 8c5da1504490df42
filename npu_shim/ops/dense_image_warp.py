"""Warping of images by a flow, with bilinear interpolation.

    y[b, i, j] = image[b] at the place (i, j) - flow[b, i, j]

A place outside the image is moved to its border. Source: the function dense_image_warp of tf.contrib.image.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor
from npu_shim.ops import gradient_of


def dense_image_warp(image: Tensor, flow: Tensor, name: str | None = None) -> Tensor:
    """Warp images by a flow.

    Args:
        image: [batch, height, width, channels], float16 or float32; height and width at least 2.
        flow: [batch, height, width, 2], the way back along the height and the width.
        name: name of the ops.
    Returns:
        A tensor with the image's shape and type.
    """
    image, flow = tf.convert_to_tensor(image), tf.convert_to_tensor(flow)
    with tf.name_scope(name or "dense_image_warp"):
        batch, height, width, channels = tf.unstack(tf.shape(image), 4)
        rows, columns = tf.meshgrid(tf.range(height), tf.range(width), indexing="ij")
        back = tf.cast(flow, tf.float32)
        top, down = _floor_and_fraction(tf.cast(rows, tf.float32) - back[..., 0], height)
        left, right = _floor_and_fraction(tf.cast(columns, tf.float32) - back[..., 1], width)
        flat = tf.reshape(image, [-1, channels])
        first = tf.reshape(tf.range(batch) * height * width, [-1, 1, 1])

        def at(row: Tensor, column: Tensor) -> Tensor:
            return tf.gather_nd(flat, tf.expand_dims(first + row * width + column, -1))

        down, right = (tf.cast(tf.expand_dims(fraction, -1), image.dtype) for fraction in (down, right))
        above = at(top, left) * (1 - right) + at(top, left + 1) * right
        below = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
        y = above * (1 - down) + below * down
        y.set_shape(image.shape)
        return y


def dense_image_warp_grad_operator(
    grad: Tensor, image: Tensor, flow: Tensor, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of image and flow, from the gradient of dense_image_warp."""
    with tf.name_scope(name or "dense_image_warp_grad"):
        of_image, of_flow = gradient_of.gradients_of(dense_image_warp, [image, flow], grad)
        return of_image, of_flow


def dense_image_warp_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    """Return the gradients of image and flow, for an op DenseImageWarp."""
    return list(dense_image_warp_grad_operator(grad, op.inputs[0], op.inputs[1]))


def _floor_and_fraction(place: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pixel before a place, at most the last but one, and the part of a pixel behind it, in [0, 1]."""
    before = tf.clip_by_value(tf.floor(place), 0.0, tf.cast(size - 2, tf.float32))
    return tf.cast(tf.stop_gradient(before), tf.int32), tf.clip_by_value(place - tf.stop_gradient(before), 0.0, 1.0)
