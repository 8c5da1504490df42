"""Quantization as the NPU computes it, simulated in floating point: the operators that its quantization tool inserts.

Sources: the operators AscendQuant, AscendDequant, AscendAntiQuant and AscendWeightQuant of CANN's documentation and of
the vendor's TensorFlow adapter, whose results are floating-point numbers without the offset. They have no gradient.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor

_BITS = {"INT4": 4, "INT8": 8}
_FORMATS = {"NHWC": -1, "NCHW": 1}  # the axis of the channels
_LOWEST, _HIGHEST = -(2.0**15), 2.0**15 - 1  # of a number that was shifted to the right: int16


def ascend_quant(
    x: Tensor, scale: float, offset: float, dst_type: str = "INT8", quant_bits: int = 8, name: str | None = None
) -> Tensor:
    """Return x in steps of a quantized type: y = clip(round(scale x) + offset, -2^(b-1), 2^(b-1) - 1) - offset.

    Halves are rounded to even numbers, as on the NPU.

    Args:
        x: float16, float32 or float64.
        scale: 1 / the size of a step.
        offset: an integer, the quantized number of 0.
        dst_type: "INT8" for b = 8, "INT4" for b = 4.
        quant_bits: has no effect; dst_type decides.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type; its numbers are integers.
    Raises:
        ValueError: another dst_type.
    """
    bits = _bits_of_type("ascend_quant", dst_type)
    with tf.name_scope(name or "ascend_quant"):
        steps = tf.round(tf.convert_to_tensor(x) * scale) + offset
        return tf.clip_by_value(steps, -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) - offset


def ascend_weight_quant(
    x: Tensor, offset_w: Tensor, T: DType, dst_type: str = "INT8", name: str | None = None
) -> Tensor:
    """Return quantized weights as floating-point numbers without their offset: y = x - offset_w.

    Args:
        x: int8, the weights.
        offset_w: int8, a number, or one for each channel in a shape that broadcasts to that of x.
        T: the type of the result.
        dst_type: "INT8" or "INT4"; it has no effect.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type T.
    Raises:
        ValueError: another dst_type.
    """
    _bits_of_type("ascend_weight_quant", dst_type)
    with tf.name_scope(name or "ascend_weight_quant"):
        return tf.cast(x, T) - tf.cast(offset_w, T)


def ascend_dequant(
    x: Tensor, deq_scale: Tensor, ksize: Sequence[int], data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Return the numbers of an integer accumulator: y = deq_scale x.

    With n > 0 the accumulator is first shifted to the right, as int16: y = 2^n deq_scale clip(floor(area x / 2^n),
    -2^15, 2^15 - 1) / area, where area = ksize[0] ksize[1].

    Args:
        x: float16, float32 or float64; integers.
        deq_scale: uint64, one, or one for each channel. Its lower 32 bits are the bits of a float32, the scale; the 8
            bits above are n.
        ksize: two ints, the window of an average pooling; [1, 1] without one.
        data_format: "NHWC" or "NCHW", with several scales.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    Raises:
        ValueError: another data_format.
    """
    if data_format not in _FORMATS:
        raise ValueError(f"ascend_dequant: data_format={data_format!r} is not allowed. It must be 'NHWC' or 'NCHW'.")
    with tf.name_scope(name or "ascend_dequant"):
        x, scales = tf.convert_to_tensor(x), tf.reshape(tf.convert_to_tensor(deq_scale, tf.uint64), [-1])
        halves = tf.bitcast(scales, tf.int32)  # [n, 2], the lower half first
        if data_format == "NCHW" and scales.shape.as_list() != [1]:
            halves = tf.reshape(halves, [-1] + [1] * (x.shape.rank - 2) + [2])
        scale = tf.cast(tf.bitcast(halves[..., 0], tf.float32), x.dtype)
        shift = tf.cast(tf.bitwise.bitwise_and(halves[..., 1], 255), x.dtype)
        power, area = tf.pow(tf.constant(2, x.dtype), shift), ksize[0] * ksize[1]
        shifted = tf.clip_by_value(tf.floor(x * area / power), _LOWEST, _HIGHEST) * power
        return tf.compat.v2.where(shift > 0, shifted / area, x) * scale


def ascend_anti_quant(x: Tensor, scale: float, offset: float, name: str | None = None) -> Tensor:
    """Return the numbers of ascend_quant in their own size: y = scale x.

    Args:
        x: float16, float32 or float64.
        scale: the size of a step.
        offset: has no effect: the numbers of ascend_quant have none.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    """
    with tf.name_scope(name or "ascend_anti_quant"):
        return tf.convert_to_tensor(x) * scale


def _bits_of_type(operator: str, dst_type: str) -> int:
    if dst_type not in _BITS:
        raise ValueError(f"{operator}: dst_type={dst_type!r} is not allowed. It must be 'INT8' or 'INT4'.")
    return _BITS[dst_type]
