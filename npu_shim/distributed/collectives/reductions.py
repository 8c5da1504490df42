"""Reductions: element types and operations.

float16 and bfloat16 are accumulated in float32, in rank order, and rounded once
at the end. NumPy has no bfloat16, so the code works on its 16 bits, which are the
upper half of a float32.
"""

from __future__ import annotations

from typing import Callable, Iterator, NamedTuple, Sequence

import numpy as np

REDUCTIONS: dict[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
BFLOAT16 = "bfloat16"
_BLOCK = 1 << 15  # elements per step, so that their float32 copies stay in the cache


def check_reduction(reduction: str, name: str) -> None:
    """Check a reduction and its element type.

    Raises:
        ValueError: the reduction is unknown.
        TypeError: the type cannot be reduced.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r} is not allowed. Use one of {', '.join(REDUCTIONS)}.")
    if name != BFLOAT16 and np.dtype(name).kind not in "iuf":
        raise TypeError(f"a tensor of type {name} cannot be reduced. Cast it to an integer or floating-point type.")


class Combiner:
    """A reduction of flat arrays in their order.

    ``combiner(inputs, out)`` reduces arrays. ``accumulate()`` reduces the first of them to a partial result, which
    ``finish()`` continues; the result has the same bits. bfloat16 arrays are passed as bits (uint16).
    """

    def __init__(self, function: np.ufunc, half: _Half | None) -> None:
        self._function, self._half = function, half

    def __call__(self, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Reduce arrays. out may be the first or second input, but no later one."""
        self.finish(None, inputs, out)

    def partial_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the type of a partial result of arrays of ``dtype``."""
        return np.dtype(np.float32) if self._half else dtype

    def accumulate(self, partial: np.ndarray | None, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Reduce a partial result and arrays to a partial result; out may be ``partial``."""
        if self._half is None:
            self.finish(partial, inputs, out)
            return
        for block, total in self._reduce_in_blocks(partial, inputs, len(out)):
            out[block] = total

    def finish(self, partial: np.ndarray | None, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Reduce a partial result and arrays to the result; out may be the first input."""
        if self._half is None:
            _apply_ufunc(self._function, inputs if partial is None else [partial, *inputs], out)
            return
        for block, total in self._reduce_in_blocks(partial, inputs, len(out)):
            out[block] = self._half.narrow(total)

    def _reduce_in_blocks(
        self, partial: np.ndarray | None, inputs: Sequence[np.ndarray], count: int
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of the arrays, and their reduction in float32."""
        assert self._half is not None
        with np.errstate(all="ignore"):
            for begin in range(0, count, _BLOCK):
                block = slice(begin, begin + _BLOCK)
                total = self._half.widen(inputs[0][block]) if partial is None else partial[block].copy()
                for more in inputs[1:] if partial is None else inputs:
                    self._function(total, self._half.widen(more[block]), out=total)
                yield block, total


class _Half(NamedTuple):
    """The conversions of a half-precision type to float32 and back."""

    widen: Callable[[np.ndarray], np.ndarray]
    narrow: Callable[[np.ndarray], np.ndarray]


def combiner(reduction: str, name: str) -> Combiner:
    """Return the Combiner of a reduction for a type."""
    float16 = _Half(lambda half: half.astype(np.float32), lambda wide: wide.astype(np.float16))
    halves = {BFLOAT16: _Half(_from_bfloat16, _to_bfloat16), "float16": float16}
    return Combiner(REDUCTIONS[reduction], halves.get(name))


def _apply_ufunc(function: np.ufunc, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
    if len(inputs) == 1:
        out[...] = inputs[0]
        return
    with np.errstate(all="ignore"):  # infinities and NaN propagate as in any other sum
        function(inputs[0], inputs[1], out=out)
        for more in inputs[2:]:
            function(out, more, out=out)


def _from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _to_bfloat16(wide: np.ndarray) -> np.ndarray:
    """Round to the nearest, ties to even, as hardware does; a NaN stays a NaN."""
    bits = wide.view(np.uint32)
    rounded = (bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))) >> np.uint32(16)
    nan = np.isnan(wide)
    if nan.any():
        rounded[nan] = (bits[nan] >> np.uint32(16)) | np.uint32(0x40)
    return rounded.astype(np.uint16)
