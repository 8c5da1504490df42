"""Convolution that samples its input at learned places.

The place of element (i, j) of the filter for the output (r, c) is, with offsets dy and dx,

    (r stride - pad_top + i dilation + dy,  c stride - pad_left + j dilation + dx)

Its value is interpolated between four pixels, where pixels outside the image are 0, and multiplied by a mask.
Source: Zhu et al., "Deformable ConvNets v2", arXiv:1811.11168.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Tensor
from npu_shim.ops import gradient_of
from npu_shim.ops.graph_mode import only_in_graphs

_TO_NHWC, _TO_NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


def deformable_offsets(
    x: Tensor, offsets: Tensor, strides: Sequence[int], pads: Sequence[int], ksize: Sequence[int],
    dilations: Sequence[int] = (1, 1, 1, 1), data_format: str = "NHWC", deformable_groups: int = 1,
    modulated: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the samples that a deformable convolution multiplies by its filter.

    Args:
        x: [batch, height, width, channels], float16 or float32.
        offsets: [batch, rows, columns, 3 groups kh kw]: the offsets along the width for all elements of the filter,
            those along the height, and the masks.
        strides: four ints, in the order of data_format.
        pads: top, bottom, left, right.
        ksize: kh and kw, the size of the filter.
        dilations: four ints, in the order of data_format.
        data_format: "NHWC"; or "NCHW", in which all tensors have the channels second.
        deformable_groups: groups of channels, each with its own offsets.
        modulated: True; the form without masks is not supported.
        name: name of the ops.
    Returns:
        [batch, rows kh, columns kw, channels].
    Raises:
        ValueError: an argument is not supported, or sizes other than the batch are not static.
    """
    if not modulated or data_format not in ("NHWC", "NCHW"):
        raise ValueError(
            f"deformable_offsets: modulated={modulated!r} and data_format={data_format!r} are not supported. Use True, "
            "and 'NHWC' or 'NCHW'."
        )
    x, offsets = tf.convert_to_tensor(x), tf.convert_to_tensor(offsets)
    with tf.name_scope(name or "deformable_offsets"):
        if data_format == "NCHW":
            x, offsets = tf.transpose(x, _TO_NHWC), tf.transpose(offsets, _TO_NHWC)
        h, w = data_format.index("H"), data_format.index("W")
        (kh, kw), groups = ksize, deformable_groups
        _, height, width, channels = x.shape.as_list()
        _, rows, columns, parts = offsets.shape.as_list()
        if None in (height, width, channels, rows, columns, parts) or parts != 3 * groups * kh * kw:
            raise ValueError(
                f"deformable_offsets: x has shape {x.shape} and offsets {offsets.shape}, but sizes must be static, and "
                f"offsets have 3 x {groups} groups x {kh} x {kw} channels."
            )
        batch = tf.shape(x)[0]
        given = tf.cast(tf.reshape(offsets, [batch, rows, columns, 3, groups, kh, kw]), tf.float32)
        place_y = (
            _sampling_grid(rows, strides[h], pads[0], kh, dilations[h], [1, rows, 1, 1, kh, 1]) + given[:, :, :, 1]
        )
        place_x = (
            _sampling_grid(columns, strides[w], pads[2], kw, dilations[w], [1, 1, columns, 1, 1, kw])
            + given[:, :, :, 0]
        )
        per_group = channels // groups
        pixels = tf.reshape(
            tf.transpose(tf.reshape(x, [batch, height * width, groups, per_group]), [0, 2, 1, 3]), [-1, per_group]
        )
        image = tf.reshape(tf.range(batch), [-1, 1, 1, 1, 1, 1]) * groups + tf.reshape(
            tf.range(groups), [1, 1, 1, -1, 1, 1]
        )
        top, left = tf.floor(place_y), tf.floor(place_x)
        down, right = place_y - top, place_x - left
        total: Tensor = 0.0
        for row, share_y in ((top, 1 - down), (top + 1, down)):
            for column, share_x in ((left, 1 - right), (left + 1, right)):
                inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
                index = tf.cast(
                    tf.clip_by_value(row, 0.0, height - 1.0) * width + tf.clip_by_value(column, 0.0, width - 1.0),
                    tf.int32,
                )
                corner = tf.gather_nd(pixels, tf.expand_dims(image * (height * width) + index, -1))
                share = share_y * share_x * tf.cast(inside, tf.float32) * given[:, :, :, 2]
                total += tf.cast(tf.expand_dims(share, -1), x.dtype) * corner
        y = tf.reshape(tf.transpose(total, [0, 1, 4, 2, 5, 3, 6]), [batch, rows * kh, columns * kw, channels])
        return tf.transpose(y, _TO_NCHW) if data_format == "NCHW" else y


def deformable_offsets_grad_operator(
    grad: Tensor, x: Tensor, offsets: Tensor, strides: Sequence[int], pads: Sequence[int], ksize: Sequence[int],
    dilations: Sequence[int] = (1, 1, 1, 1), data_format: str = "NHWC", deformable_groups: int = 1,
    modulated: bool = True, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of x and offsets, from the gradient of deformable_offsets. Other arguments are its own."""

    def forward(x: Tensor, offsets: Tensor) -> Tensor:
        return deformable_offsets(
            x, offsets, strides, pads, ksize, dilations, data_format, deformable_groups, modulated
        )

    with tf.name_scope(name or "deformable_offsets_grad"):
        of_x, of_offsets = gradient_of.gradients_of(forward, [x, offsets], grad)
        return of_x, of_offsets


def deformable_offsets_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    """Return the gradients of x and offsets, for an op DeformableOffsets."""
    names = "strides", "pads", "ksize", "dilations", "data_format", "deformable_groups", "modulated"
    attributes = {name: op.get_attr(name) for name in names}
    return list(deformable_offsets_grad_operator(grad, op.inputs[0], op.inputs[1], **attributes))


@only_in_graphs("npu_cube_ops.deformable_conv2d")
def deformable_conv2d(
    x: Tensor, filter: Tensor, offsets: Tensor, strides: Sequence[int] | None = None, pads: Sequence[int] | None = None,
    data_format: str = "NHWC", dilations: Sequence[int] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1,
    modulated: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolve an image with a filter at learned places.

    Args:
        x: [batch, height, width, channels], float16 or float32.
        filter: [kh, kw, channels, outputs].
        offsets, strides, pads, data_format, dilations, deformable_groups: as for deformable_offsets.
        groups: 1.
        modulated: True.
        name: name of the ops.
    Returns:
        [batch, rows, columns, outputs].
    Raises:
        RuntimeError: groups or modulated is not supported.
        ValueError: strides or pads are missing, or sizes are not static.
    """
    if not modulated or groups != 1:
        raise RuntimeError(
            f"deformable_conv2d: modulated={modulated!r} and groups={groups!r} are not supported. Use True and 1."
        )
    if strides is None or pads is None:
        raise ValueError(f"deformable_conv2d: strides={strides!r} and pads={pads!r}. Give four ints for each.")
    weights = tf.convert_to_tensor(filter)
    with tf.name_scope(name or "deformable_conv2d"):
        ksize = weights.shape.as_list()[:2]
        settings = (strides, pads, ksize, dilations, data_format, deformable_groups)
        samples = deformable_offsets(x, offsets, *settings)
        if data_format == "NCHW":
            samples = tf.transpose(samples, _TO_NHWC)
        y = tf.nn.conv2d(samples, weights, strides=[1, *ksize, 1], padding="VALID")
        return tf.transpose(y, _TO_NCHW) if data_format == "NCHW" else y


def _sampling_grid(number: int, stride: int, pad: int, size: int, dilation: int, shape: list[int]) -> Tensor:
    """Return the places of the elements of a filter without offsets, along one axis."""
    starts = tf.range(number, dtype=tf.float32) * stride - pad
    return tf.reshape(tf.expand_dims(starts, 1) + tf.range(size, dtype=tf.float32) * dilation, shape)
