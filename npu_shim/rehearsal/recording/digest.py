"""Digests of tensors: a few numbers that say how far two tensors are apart, without the tensors.

    bucket[b] = sum over i = b (mod 32) of sign[i] * x[i],   sign[i] = +1 or -1, fixed and pseudo-random

This is a count sketch. It is linear: the buckets of x - y are the differences of the buckets, and their squared sum
estimates the squared norm of x - y without bias. One single different element always shows. A tensor of up to 32
elements has one element in each bucket, so the estimate is exact. A part of a float32 tensor is added in
float32, which takes a third less time and rounds by 1e-7. The sums of parts, and other types, are added in float64.

Source: Charikar, Chen, Farach-Colton, "Finding frequent items in data streams", ICALP 2002.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Value


BUCKETS = 32
NORM, NOT_FINITE, CHECKSUM, HEAD = range(4)  # norm, number of Inf and NaN, checksum of the bytes; then the buckets
_ROW = 8 * BUCKETS  # longer rows are added faster
_CHUNK = _ROW * 256
_PART = _CHUNK // 2  # elements that the cache holds as float64
_PIECE = 8 * _CHUNK  # bytes that the cache holds
_SIGNS = np.random.RandomState(22).choice([-1.0, 1.0], _CHUNK).reshape(-1, _ROW)
_SINGLE_SIGNS = _SIGNS.astype(np.float32)
_STEP = 0x9E3779B97F4A7C15
_FACTORS = 2 * np.random.RandomState(23).randint(0, 2**63 - 1, _CHUNK, np.int64).astype(np.uint64) + 1  # odd
_MOST_KNOWN = 2000
_SMALLEST_SQUARE = 1e-20  # of the norm of a part: what is lost of it in float32 is 1e-13 of it


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

    The gradient of a tape and the one that is applied are often the same. A new array is read from memory once: each
    piece for its checksum, and then from the cache.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], np.ndarray] = {}
        self._begins: set[tuple[str, int, int]] = set()  # as the keys of known arrays, of their first pieces
        self._floats = np.empty(_PART)  # kept, because new memory takes longer than the arithmetic

    def of(self, value: np.ndarray) -> np.ndarray:
        """Return the digest of an array.

        Args:
            value: array of any shape that is_numeric() accepts.
        Returns:
            float64 [width(value.shape)]: norm, number of Inf and NaN, checksum, and the buckets. Inf and NaN count
            as 0 in all but their number and the checksum. The real and imaginary parts of complex elements are added,
            each with a factor of its own.
        """
        flat = np.ascontiguousarray(value).reshape(-1)
        size = _PIECE // flat.itemsize
        pieces = [flat[start : start + size] for start in range(0, flat.size, size)]
        begin = check = _add_words(flat.size, flat[:size])
        kind = flat.dtype.char, flat.size
        if (*kind, begin) in self._begins:
            for piece in pieces[1:]:
                check = _add_words(check, piece)
            if (*kind, check >> 11) in self._known:
                return self._known[(*kind, check >> 11)]
        elif len(self._begins) >= _MOST_KNOWN or len(self._known) >= _MOST_KNOWN:
            self._known.clear()
            self._begins.clear()
        made = self._new(flat, pieces, begin)
        self._begins.add((*kind, begin))
        self._known[(*kind, int(made[CHECKSUM]))] = made
        return made

    def _new(self, flat: np.ndarray, pieces: list[np.ndarray], check: int) -> np.ndarray:
        """Return the digest of an array, its pieces, and the checksum of the first one."""
        result = np.zeros(width(flat.shape))
        sums, squares, row = np.zeros(_ROW), 0.0, 0
        for number, piece in enumerate(pieces):
            check = _add_words(check, piece) if number else check
            for start in range(0, piece.size, _PART):
                part = _in_rows(piece[start : start + _PART])
                square = _single_squared_norm(part) if part.dtype == np.float32 else 0.0
                signs = _SINGLE_SIGNS
                if not square:
                    part, signs = self._as_floats(part), _SIGNS
                    square = squared_norm(part.reshape(-1))
                if not np.isfinite(square):
                    finite = np.isfinite(part)
                    result[NOT_FINITE] += part.size - np.count_nonzero(finite)
                    part[~finite] = 0.0
                    square = squared_norm(part.reshape(-1))
                squares += square
                sums += np.einsum("ij,ij->j", part, signs[row : row + len(part)])
                row = (row + len(part)) % len(_SIGNS)
        result[NORM] = squares**0.5
        result[CHECKSUM] = check >> 11  # a float64 has 53 bits
        result[HEAD:] = sums.reshape(-1, BUCKETS).sum(0)[: len(result) - HEAD]
        return result

    def _as_floats(self, part: np.ndarray) -> np.ndarray:
        floats = self._floats[: part.size].reshape(part.shape)
        np.copyto(floats, part.real if part.dtype.kind == "c" else part)
        if part.dtype.kind == "c":
            floats += 0.618034 * part.imag
        return floats


def _add_words(check: int, piece: np.ndarray) -> int:
    """Add a piece to a checksum of 64 bits: a sum of words, each with a random factor.

    A CRC takes four times as long.
    """
    data = piece.view(np.uint8)
    words = data[: data.size // 8 * 8].view(np.uint64)
    rest = int.from_bytes(data[words.size * 8 :].tobytes(), "little")
    return (check + rest + int(np.einsum("i,i->", words, _FACTORS[: words.size]))) * _STEP % 2**64


def _in_rows(part: np.ndarray) -> np.ndarray:
    """Return a vector as rows, the last one filled up with zeros."""
    if part.size % _ROW:
        part = np.concatenate([part, np.zeros(_ROW - part.size % _ROW, part.dtype)])
    return part.reshape(-1, _ROW)


def _single_squared_norm(rows: np.ndarray) -> float:
    """Return the sum of the squares of float32 rows; 0 if float32 is too small for the squares.

    The sums of rows and the sketch of a part round to 1e-7. Adding in float64 takes twice as long.
    """
    found = float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))
    return found if _SMALLEST_SQUARE < found < np.inf else 0.0


def squared_norm(flat: np.ndarray) -> float:
    """Return the sum of the squares of a vector.

    np.dot() would do it in threads of the BLAS. They wait busily after each call, for longer than a digest takes.
    """
    return float(np.einsum("i,i->", flat, flat))


def scalar_of(values: np.ndarray) -> float:
    """Return the value of a scalar from its digest; NaN if it is Inf or NaN."""
    return float(values[HEAD] * _SIGNS[0, 0]) if not values[NOT_FINITE] else float("nan")


def few_elements(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a tensor of up to 32 finite elements from its digest; None for any other."""
    if width(shape) == HEAD + BUCKETS or values[NOT_FINITE]:
        return None
    elements: np.ndarray = values[HEAD:] * _SIGNS[0, : len(values) - HEAD]
    return elements.reshape(shape)


def as_numbers(value: np.ndarray) -> np.ndarray:
    """Return an array of a type that NumPy can save: bfloat16 becomes float32."""
    return value if value.dtype.kind in "biufc" else value.astype(np.float32)
