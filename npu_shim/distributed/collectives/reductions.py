"""Reductions: element types and operations.

float16 and bfloat16 are accumulated in float32, in rank order, and rounded once
at the end. NumPy has no bfloat16, so the code works on its 16 bits, which are the
upper half of a float32.
"""

from __future__ import annotations

from typing import Callable, Sequence

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


def combiner(reduction: str, name: str) -> Callable[[Sequence[np.ndarray], np.ndarray], None]:
    """Return a function ``combine(inputs, out)`` that reduces flat arrays in their order.

    out may be the first or second input, but no later one. bfloat16 arrays are passed as bits (uint16).
    """
    function = REDUCTIONS[reduction]
    if name == BFLOAT16:
        return lambda inputs, out: _in_float32(function, inputs, out, _from_bfloat16, _to_bfloat16)
    if name == "float16":
        return lambda inputs, out: _in_float32(function, inputs, out, _from_float16, _to_float16)
    return lambda inputs, out: _directly(function, inputs, out)


def _directly(function: np.ufunc, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
    if len(inputs) == 1:
        out[...] = inputs[0]
        return
    with np.errstate(all="ignore"):  # infinities and NaN propagate as in any other sum
        function(inputs[0], inputs[1], out=out)
        for more in inputs[2:]:
            function(out, more, out=out)


def _in_float32(
    function: np.ufunc,
    inputs: Sequence[np.ndarray],
    out: np.ndarray,
    widen: Callable[[np.ndarray], np.ndarray],
    narrow: Callable[[np.ndarray], np.ndarray],
) -> None:
    with np.errstate(all="ignore"):
        for begin in range(0, len(out), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            total = widen(inputs[0][block])
            for more in inputs[1:]:
                function(total, widen(more[block]), out=total)
            out[block] = narrow(total)


def _from_float16(half: np.ndarray) -> np.ndarray:
    return half.astype(np.float32)


def _to_float16(wide: np.ndarray) -> np.ndarray:
    return wide.astype(np.float16)


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
