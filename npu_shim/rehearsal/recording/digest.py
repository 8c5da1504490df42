"""Digests of tensors: a few numbers that say how far two tensors are apart, without the tensors.

    bucket[b] = sum over i = b (mod 32) of sign[i] * x[i],   sign[i] = +1 or -1, fixed and pseudo-random

This is a count sketch. It is linear: the buckets of x - y are the differences of the buckets, and their squared sum
estimates the squared norm of x - y without bias. One single different element always shows. A tensor of up to 32
elements has one element in each bucket, so the estimate is exact. A part of a float32 tensor is added in
float32, which takes a third less time and rounds by 1e-7. The sums of parts, and other types, are added in float64.

Source: Charikar, Chen, Farach-Colton, "Finding frequent items in data streams", ICALP 2002.
"""

from __future__ import annotations

from typing import Hashable

import numpy as np

from npu_shim._tensorflow.types import Value

BUCKETS = 32
NORM, NOT_FINITE, HEAD = range(3)  # norm, number of Inf and NaN; then the buckets
_ROW = 8 * BUCKETS  # longer rows are added faster
_CHUNK = _ROW * 256
_PART = _CHUNK // 2  # elements that the cache holds as float64
_SIGNS = np.random.RandomState(22).choice([-1.0, 1.0], _CHUNK).reshape(-1, _ROW)
_SINGLE_SIGNS = _SIGNS.astype(np.float32)
_SHARE = 8 * _PART
_SMALLEST_SQUARE = 1e-20  # of the norm of a part: what is lost of it in float32 is 1e-13 of it


def digest_length(shape: tuple[int, ...]) -> int:
    """Return the number of values in the digest of a tensor of this shape."""
    return HEAD + min(int(np.prod(shape, dtype=np.int64)), BUCKETS)


def is_numeric(value: Value) -> bool:
    """Return True if an array has a digest: bool, integer, float (bfloat16 too) or complex elements."""
    return value.dtype.kind in "biufc" or value.dtype.name == "bfloat16"


def digest(value: np.ndarray) -> np.ndarray:
    """Return the digest of an array; see Digests.of."""
    return Digests().compute_digest(value)


class Digests:
    """Compute digests, one after the other.

    The gradient that is applied is often the one of the tape, in the same memory.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Hashable, ...], tuple[np.ndarray, np.ndarray]] = {}  # place -> an array, and its digest
        self._floats = np.empty(_PART)  # kept, because new memory takes longer than the arithmetic

    def compute_digest(self, value: np.ndarray, turn: int | None = None, is_kept: bool = False) -> np.ndarray:
        """Return the digest of an array.

        Args:
            value: array of any shape that is_numeric() accepts.
            turn: selects the elements of an array of more than 262,144: so many, and others at each turn; None for all.
            is_kept: True to keep the array, so that its memory is not written again, and its digest until release().
        Returns:
            float64 [digest_length(value.shape)]: norm, number of Inf and NaN, and the buckets. Inf and NaN count as
            0 in all but their number. The real and imaginary parts of complex elements are added, each with a factor of
            its own.
        """
        start, end = (0, value.size) if turn is None else _share_of_turn(value.size, turn)
        place = value.__array_interface__["data"][0], value.dtype.char, value.shape, value.strides, start
        if place in self._kept:
            return self._kept[place][1]
        sketch = self._compute_large_digest(
            np.ascontiguousarray(value).reshape(-1)[start:end], digest_length(value.shape)
        )
        if is_kept:
            self._kept[place] = value, sketch
        return sketch

    def release_arrays(self) -> None:
        """Keep no array any more."""
        self._kept.clear()

    def _compute_large_digest(self, flat: np.ndarray, length: int) -> np.ndarray:
        numbers = np.zeros(length)
        sums, squares, row = np.zeros(_ROW), 0.0, 0
        for start in range(0, flat.size, _PART):
            part = _reshape_to_rows(flat[start : start + _PART])
            square = _single_squared_norm(part) if part.dtype == np.float32 else 0.0
            signs = _SINGLE_SIGNS
            if not square:
                part, signs = self._as_floats(part), _SIGNS
                square = squared_norm(part.reshape(-1))
            if not np.isfinite(square):
                finite = np.isfinite(part)
                numbers[NOT_FINITE] += part.size - np.count_nonzero(finite)
                part[~finite] = 0.0
                square = squared_norm(part.reshape(-1))
            squares += square
            sums += np.einsum("ij,ij->j", part, signs[row : row + len(part)])
            row = (row + len(part)) % len(_SIGNS)
        numbers[NORM] = squares**0.5
        numbers[HEAD:] = sums.reshape(-1, BUCKETS).sum(0)[: len(numbers) - HEAD]
        return numbers

    def _as_floats(self, part: np.ndarray) -> np.ndarray:
        floats = self._floats[: part.size].reshape(part.shape)
        np.copyto(floats, part.real if part.dtype.kind == "c" else part)
        if part.dtype.kind == "c":
            floats += 0.618034 * part.imag
        return floats


def _share_of_turn(size: int, turn: int) -> tuple[int, int]:
    """Return first and last place of the elements that have their turn."""
    start = turn % max(1, -(-size // _SHARE)) * _SHARE
    return start, min(size, start + _SHARE)


def _reshape_to_rows(part: np.ndarray) -> np.ndarray:
    """Return a vector as rows, the last one filled up with zeros."""
    if part.size % _ROW:
        part = np.concatenate([part, np.zeros(_ROW - part.size % _ROW, part.dtype)])
    return part.reshape(-1, _ROW)


def _single_squared_norm(rows: np.ndarray) -> float:
    """Return the sum of the squares of float32 rows; 0 if float32 is too small for the squares.

    The sums of rows and the sketch of a part round to 1e-7. Adding in float64 takes twice as long.
    """
    square = float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))
    return square if _SMALLEST_SQUARE < square < np.inf else 0.0


def squared_norm(flat: np.ndarray) -> float:
    """Return the sum of the squares of a vector.

    np.dot() would do it in threads of the BLAS. They wait busily after each call, for longer than a digest takes.
    """
    return float(np.einsum("i,i->", flat, flat))


def scalar_from_digest(values: np.ndarray) -> float:
    """Return the value of a scalar from its digest; NaN if it is Inf or NaN."""
    return float(values[HEAD] * _SIGNS[0, 0]) if not values[NOT_FINITE] else float("nan")


def elements_from_digest(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a tensor of up to 32 finite elements from its digest; None for any other."""
    if digest_length(shape) == HEAD + BUCKETS or values[NOT_FINITE]:
        return None
    elements: np.ndarray = values[HEAD:] * _SIGNS[0, : len(values) - HEAD]
    return elements.reshape(shape)


def as_savable_array(value: np.ndarray) -> np.ndarray:
    """Return an array of a type that NumPy can save: bfloat16 becomes float32."""
    return value if value.dtype.kind in "biufc" else value.astype(np.float32)
