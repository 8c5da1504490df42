"""Images resized and warped as in OpenCV, one image at a time.

    y[i, j] = sum over r, c of R[i, r] C[j, c] x[r, c]

for resizing; R and C have the weights of the rows and columns. Source: the functions resize and warpAffine of OpenCV's
documentation, whose CPU code rounds weights to fractions. Gradients are those of the formula; uint8 has none.
"""

from __future__ import annotations

from typing import Callable, Mapping, TypeVar

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor

_Value = TypeVar("_Value")
_CUBIC = -0.75  # the slope of OpenCV's cubic kernel


def resize_v2_operator(x: Tensor, dst_size: Tensor, interpolation: str, name: str | None = None) -> Tensor:
    """Return an image in another size.

    Args:
        x: uint8 or float32 [height, width, channels].
        dst_size: int32 or int64 [2]: height and width of the result.
        interpolation: "nearest", "bilinear", "cubic" or "area", also as "INTER_NEAREST" and so on. "area" is the mean
            of the pixels below each result; OpenCV interpolates if one side grows and the other shrinks.
        name: name of the ops.
    Returns:
        [dst_size[0], dst_size[1], channels], of x's type; uint8 is rounded, halves to even numbers.
    Raises:
        ValueError: another interpolation.
    """
    weights = _value_of_interpolation("resize_v2", interpolation, _WEIGHTS)
    with tf.name_scope(name or "resize_v2"):
        image, size = tf.convert_to_tensor(x), tf.cast(dst_size, tf.int32)
        shape = tf.shape(image)
        rows, columns = weights(size[0], shape[0]), weights(size[1], shape[1])
        y = tf.einsum("ir,rcn->icn", rows, tf.cast(image, tf.float32))
        return _cast_like_image(tf.einsum("jc,icn->ijn", columns, y), image)


def resize_v2(x: Tensor, dst_size: Tensor, interploation: str = "INTEL_BILINEAR") -> Tensor:
    """Return an image in another size. Arguments and result as for resize_v2_operator, where it is interpolation."""
    return resize_v2_operator(x, dst_size, interploation)


def warp_affine_v2_operator(
    x: Tensor, matrix: Tensor, dst_size: Tensor, interpolation: str, border_type: str, border_value: int = 0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return an image to which an affine map was applied: y at M (column, row, 1) is x at (column, row).

    Args:
        x: uint8 or float32 [height, width, channels].
        matrix: float32 [2, 3], M; its first two columns have an inverse.
        dst_size: int32 or int64 [2]: height and width of the result.
        interpolation: "nearest" or "bilinear", also as "INTER_NEAREST" and so on.
        border_type: "constant" or "BORDER_CONSTANT".
        border_value: the pixels outside x.
        name: name of the ops.
    Returns:
        [dst_size[0], dst_size[1], channels], of x's type; uint8 is rounded, halves to even numbers.
    Raises:
        ValueError: another interpolation or border_type.
    """
    is_nearest = _value_of_interpolation("warp_affine_v2", interpolation, {"nearest": True, "bilinear": False})
    if border_type.lower().replace("border_", "") != "constant":
        raise ValueError(f"warp_affine_v2: border_type={border_type!r} is not supported. Use 'BORDER_CONSTANT'.")
    with tf.name_scope(name or "warp_affine_v2"):
        image, size = tf.convert_to_tensor(x), tf.cast(dst_size, tf.int32)
        pixels, matrix = tf.cast(image, tf.float32), tf.cast(matrix, tf.float32)
        rows, columns = tf.meshgrid(tf.range(size[0]), tf.range(size[1]), indexing="ij")
        places = tf.cast(tf.stack([columns, rows], -1), tf.float32)
        source = tf.einsum("ab,ijb->ija", tf.linalg.inv(matrix[:, :2]), places - matrix[:, 2])
        column, row = source[..., 0], source[..., 1]
        if is_nearest:
            y = _gather_pixels(pixels, tf.round(row), tf.round(column), border_value)
        else:
            top, left = tf.stop_gradient(tf.floor(row)), tf.stop_gradient(tf.floor(column))
            down, right = (row - top)[..., None], (column - left)[..., None]
            above = _gather_pixels(pixels, top, left, border_value) * (1 - right)
            above += _gather_pixels(pixels, top, left + 1, border_value) * right
            below = _gather_pixels(pixels, top + 1, left, border_value) * (1 - right)
            below += _gather_pixels(pixels, top + 1, left + 1, border_value) * right
            y = above * (1 - down) + below * down
        return _cast_like_image(y, image)


def warp_affine_v2(
    x: Tensor,
    matrix: Tensor,
    dst_size: Tensor,
    interploation: str = "INTEL_BILINEAR",
    border_type: str = "BORDER_CONSTANT",
    border_value: int = 0,
) -> Tensor:
    """Return an image to which an affine map was applied. Arguments and result as for warp_affine_v2_operator."""
    return warp_affine_v2_operator(x, matrix, dst_size, interploation, border_type, border_value)


def decode_and_resize_jpeg(image: Tensor, size: Tensor) -> Tensor:
    """Return the pixels of a JPEG in another size, by bilinear interpolation.

    Args:
        image: scalar string, the bytes of the file.
        size: int32 [2]: height and width of the result.
    Returns:
        uint8 [size[0], size[1], 3].
    """
    return resize_v2_operator(tf.io.decode_jpeg(image, channels=3), size, "bilinear")


def decode_and_crop_and_resize_jpeg(image: Tensor, crop_size: Tensor, size: Tensor) -> Tensor:
    """Return a part of a JPEG in another size, by bilinear interpolation.

    Args:
        image: scalar string, the bytes of the file.
        crop_size: int32 [4]: first row, first column, height and width of the part.
        size: int32 [2]: height and width of the result.
    Returns:
        uint8 [size[0], size[1], 3].
    """
    return resize_v2_operator(tf.io.decode_and_crop_jpeg(image, crop_size, channels=3), size, "bilinear")


def _value_of_interpolation(operator: str, interpolation: str, values: Mapping[str, _Value]) -> _Value:
    """Return what stands for an interpolation, which is written in several ways."""
    word = interpolation.lower()
    for prefix in ("inter_", "intel_"):
        word = word[len(prefix) :] if word.startswith(prefix) else word
    word = {"linear": "bilinear"}.get(word, word)
    if word not in values:
        raise ValueError(f"{operator}: interpolation={interpolation!r} is not supported. Use {' or '.join(values)}.")
    return values[word]


def _cast_like_image(y: Tensor, image: Tensor) -> Tensor:
    """Return pixels in the type of an image."""
    if image.dtype != tf.uint8:
        return y
    return tf.cast(tf.clip_by_value(tf.round(y), 0.0, 255.0), tf.uint8)


def _gather_pixels(image: Tensor, rows: Tensor, columns: Tensor, border_value: int) -> Tensor:
    """Return the pixels at whole places, and border_value outside the image."""
    shape = tf.shape(image)
    inside = (rows >= 0) & (rows < tf.cast(shape[0], tf.float32)) & (columns >= 0)
    inside &= columns < tf.cast(shape[1], tf.float32)
    row = tf.clip_by_value(tf.cast(rows, tf.int32), 0, shape[0] - 1)
    column = tf.clip_by_value(tf.cast(columns, tf.int32), 0, shape[1] - 1)
    values = tf.gather_nd(image, tf.stack([row, column], -1))
    return tf.compat.v2.where(inside[..., None], values, tf.fill(tf.shape(values), tf.cast(border_value, tf.float32)))


def _nearest_weights(size: Tensor, source: Tensor) -> Tensor:
    place = tf.range(size) * source // size
    return tf.one_hot(place, source)


def _bilinear_weights(size: Tensor, source: Tensor) -> Tensor:
    last = tf.cast(source - 1, tf.float32)
    center = tf.clip_by_value(_source_centers(size, source), 0.0, last)
    return tf.maximum(0.0, 1 - tf.abs(center[:, None] - tf.range(tf.cast(source, tf.float32))))


def _cubic_weights(size: Tensor, source: Tensor) -> Tensor:
    center = _source_centers(size, source)
    first = tf.floor(center)
    weights = tf.zeros([size, source])
    for step in range(-1, 3):
        distance = tf.abs(center - first - step)
        near = ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance**2 + 1
        far = _CUBIC * (((distance - 5) * distance + 8) * distance - 4)
        place = tf.clip_by_value(tf.cast(first, tf.int32) + step, 0, source - 1)
        weights += tf.compat.v2.where(distance <= 1, near, far)[:, None] * tf.one_hot(place, source)
    return weights


def _area_weights(size: Tensor, source: Tensor) -> Tensor:
    scale = _scale(size, source)
    begin = tf.range(tf.cast(size, tf.float32))[:, None] * scale
    pixel = tf.range(tf.cast(source, tf.float32))
    return tf.maximum(0.0, tf.minimum(begin + scale, pixel + 1) - tf.maximum(begin, pixel)) / scale


def _source_centers(size: Tensor, source: Tensor) -> Tensor:
    return (tf.range(tf.cast(size, tf.float32)) + 0.5) * _scale(size, source) - 0.5


def _scale(size: Tensor, source: Tensor) -> Tensor:
    return tf.cast(source, tf.float32) / tf.cast(size, tf.float32)


_WEIGHTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "nearest": _nearest_weights,
    "bilinear": _bilinear_weights,
    "cubic": _cubic_weights,
    "area": _area_weights,
}
