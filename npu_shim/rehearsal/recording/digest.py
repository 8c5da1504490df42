"""Digests of tensors: a few numbers that say how far two tensors are apart, without the tensors.

    bucket[b] = sum over i = b (mod 32) of sign[i] * x[i],   sign[i] = +1 or -1, fixed and pseudo-random

This is a count sketch. It is linear: the buckets of x - y are the differences of the buckets, and their squared sum
estimates the squared norm of x - y without bias. One single different element always shows. A tensor of up to 32
elements has one element in each bucket, so the estimate is exact.

Source: Charikar, Chen, Farach-Colton, "Finding frequent items in data streams", ICALP 2002.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value


BUCKETS = 32
HEAD = 4  # norm, largest magnitude, number of elements that are Inf or NaN, checksum of the bytes
_CHUNK = BUCKETS * 2048
_SIGNS = np.random.RandomState(22).choice([-1.0, 1.0], _CHUNK).reshape(-1, BUCKETS)


def width(shape: tuple[int, ...]) -> int:
    """Return the number of values in the digest of a tensor of this shape."""
    return HEAD + min(int(np.prod(shape, dtype=np.int64)), BUCKETS)


def is_numeric(value: Value) -> bool:
    """Return True if an array has a digest: bool, integer, float (bfloat16 too) or complex elements."""
    return value.dtype.kind in "biufc" or value.dtype.name == "bfloat16"


def digest(value: np.ndarray) -> np.ndarray:
    """Return the digest of an array.

    Args:
        value: array of any shape that is_numeric() accepts.
    Returns:
        float64 [width(value.shape)]: norm, largest magnitude, number of Inf and NaN, checksum, and the buckets. Inf and
        NaN count as 0 in all but their number and the checksum. The real and imaginary parts of complex elements are
        added, each with a factor of its own.
    """
    flat = np.ascontiguousarray(value).reshape(-1)
    result = np.zeros(width(flat.shape))
    result[3] = zlib.crc32(flat.view(np.uint8).data) if flat.size else 0
    buckets, square = np.zeros(BUCKETS), 0.0
    for start in range(0, flat.size, _CHUNK):
        part = _as_floats(flat[start : start + _CHUNK])
        finite = np.isfinite(part)
        if not finite.all():
            result[2] += part.size - np.count_nonzero(finite)
            part = np.where(finite, part, 0.0)
        result[1] = max(result[1], np.abs(part).max())
        square += float(np.dot(part, part))
        if part.size % BUCKETS:
            part = np.concatenate([part, np.zeros(BUCKETS - part.size % BUCKETS)])
        rows = part.reshape(-1, BUCKETS)
        buckets += np.einsum("ij,ij->j", rows, _SIGNS[: len(rows)])
    result[0] = square**0.5
    result[HEAD:] = buckets[: len(result) - HEAD]
    return result


def scalar_of(values: np.ndarray) -> float:
    """Return the value of a scalar from its digest; NaN if it is Inf or NaN."""
    return float(values[HEAD] * _SIGNS[0, 0]) if not values[2] else float("nan")


def few_elements(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a tensor of up to 32 finite elements from its digest; None for any other."""
    if width(shape) == HEAD + BUCKETS or values[2]:
        return None
    elements: np.ndarray = values[HEAD:] * _SIGNS[0, : len(values) - HEAD]
    return elements.reshape(shape)


def as_numbers(value: np.ndarray) -> np.ndarray:
    """Return an array of a type that NumPy can save: bfloat16 becomes float32."""
    return value if value.dtype.kind in "biufc" else value.astype(np.float32)


def _as_floats(part: np.ndarray) -> np.ndarray:
    if part.dtype.kind == "c":
        return part.real.astype(np.float64) + 0.618034 * part.imag
    return part.astype(np.float64)
