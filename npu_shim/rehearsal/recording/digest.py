"""Digests of tensors: a few numbers that say how far two tensors are apart, without the tensors.

    bucket[b] = sum over i = b (mod 32) of sign[i] * x[i],   sign[i] = +1 or -1, fixed and pseudo-random

This is a count sketch. It is linear: the buckets of x - y are the differences of the buckets, and their squared sum
estimates the squared norm of x - y without bias. One single different element always shows. A tensor of up to 32
elements has one element in each bucket, so the estimate is exact.

Source: Charikar, Chen, Farach-Colton, "Finding frequent items in data streams", ICALP 2002.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value


BUCKETS = 32
HEAD = 4  # norm, largest magnitude, number of elements that are Inf or NaN, checksum of the bytes
_CHUNK = BUCKETS * 2048
_PART = _CHUNK // 2  # that the cache holds
_SIGNS = np.random.RandomState(22).choice([-1.0, 1.0], _CHUNK).reshape(-1, BUCKETS)
_STEP = 0x9E3779B97F4A7C15
_FACTORS = 2 * np.random.RandomState(23).randint(0, 2**63 - 1, _CHUNK, np.int64).astype(np.uint64) + 1  # odd
_MOST_KNOWN = 2000


def width(shape: tuple[int, ...]) -> int:
    """Return the number of values in the digest of a tensor of this shape."""
    return HEAD + min(int(np.prod(shape, dtype=np.int64)), BUCKETS)


def is_numeric(value: Value) -> bool:
    """Return True if an array has a digest: bool, integer, float (bfloat16 too) or complex elements."""
    return value.dtype.kind in "biufc" or value.dtype.name == "bfloat16"


def digest(value: np.ndarray) -> np.ndarray:
    """Return the digest of an array; see Digests.of."""
    return Digests().of(value)


class Digests:
    """Compute digests, one after the other. Arrays with the bytes of an earlier one have its digest.

    The gradient of a tape and the one that is applied are often the same.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], np.ndarray] = {}
        self._floats = np.empty(_PART)  # kept, because new memory takes longer than the arithmetic

    def of(self, value: np.ndarray) -> np.ndarray:
        """Return the digest of an array.

        Args:
            value: array of any shape that is_numeric() accepts.
        Returns:
            float64 [width(value.shape)]: norm, largest magnitude, number of Inf and NaN, checksum, and the buckets. Inf
            and NaN count as 0 in all but their number and the checksum. The real and imaginary parts of complex
            elements are added, each with a factor of its own.
        """
        flat = np.ascontiguousarray(value).reshape(-1)
        key = (flat.dtype.char, flat.size, _checksum(flat))
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._new(flat, key[2])
        return self._known[key]

    def _new(self, flat: np.ndarray, checksum: int) -> np.ndarray:
        result = np.zeros(width(flat.shape))
        buckets, square = np.zeros(BUCKETS), 0.0
        for start in range(0, flat.size, _PART):
            part = self._as_floats(flat[start : start + _PART])
            largest = max(part.max(), -part.min())  # NaN if there is one
            if not np.isfinite(largest):
                finite = np.isfinite(part)
                result[2] += part.size - np.count_nonzero(finite)
                part[~finite] = 0.0
                largest = np.abs(part).max()
            result[1] = max(result[1], largest)
            square += squared_norm(part)
            if part.size % BUCKETS:
                part = np.concatenate([part, np.zeros(BUCKETS - part.size % BUCKETS)])
            rows = part.reshape(-1, BUCKETS)
            first = start // BUCKETS % len(_SIGNS)
            buckets += np.einsum("ij,ij->j", rows, _SIGNS[first : first + len(rows)])
        result[0] = square**0.5
        result[3] = checksum
        result[HEAD:] = buckets[: len(result) - HEAD]
        return result

    def _as_floats(self, part: np.ndarray) -> np.ndarray:
        floats = self._floats[: part.size]
        np.copyto(floats, part.real if part.dtype.kind == "c" else part)
        if part.dtype.kind == "c":
            floats += 0.618034 * part.imag
        return floats


def _checksum(flat: np.ndarray) -> int:
    """Return a checksum of 53 bits: a sum of words, each with a random factor. A CRC takes four times as long."""
    data, check = flat.view(np.uint8), flat.size
    for start in range(0, data.size, 8 * _CHUNK):
        part = data[start : start + 8 * _CHUNK]
        words = part[: part.size // 8 * 8].view(np.uint64)
        rest = int.from_bytes(part[words.size * 8 :].tobytes(), "little")
        check = (check + rest + int(np.einsum("i,i->", words, _FACTORS[: words.size]))) * _STEP % 2**64
    return check >> 11


def squared_norm(flat: np.ndarray) -> float:
    """Return the sum of the squares of a vector.

    np.dot() would do it in threads of the BLAS. They wait busily after each call, for longer than a digest takes.
    """
    return float(np.einsum("i,i->", flat, flat))


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
