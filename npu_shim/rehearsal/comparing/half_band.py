"""The band of half precision: what runs in float32 with perturbed values depart, scaled to what one more run may.

    band = t * sqrt(mean over the perturbed runs of d^2) + u

d is the difference of a perturbed run and the float32 run at this value, the largest up to this step. t is the
two-sided quantile of Student's distribution at 99.9 %, with as many degrees of freedom as there are perturbed runs: one
more difference of the same kind is outside in one of a thousand cases. u is the unit roundoff of the type, the largest
relative error of one rounding. Data that the step gets is not rounded, and allowed no u.

Variables that an optimizer updates follow from their gradients, which are compared: a device computes updates in
float32. Adam divides each element of a gradient by its size, so the rounding of an element near zero turns its whole
step around. Only Inf and NaN are differences of such variables and of their slots.

The perturbation (half.perturbation) has the size

    a = u * sqrt(m),   m = ops in 16 bits for each value that is perturbed

because m roundings of size u follow each other, and independent errors grow with the root of their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from npu_shim.rehearsal.comparing.comparison import Comparison
from npu_shim.rehearsal.comparing.read_recording import Stream
from npu_shim.rehearsal.comparing.tolerances import Allowance, Limits
from npu_shim.rehearsal.recording.kinds import (
    CALL,
    FEED,
    FETCH,
    FINAL,
    INPUT,
    LOG,
    METRIC,
    PREDICTION,
    RATE,
    RESULT,
    SUMMARY,
    UNTRAINED,
    VARIABLE,
)

ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
RUNS = 4  # perturbed
ANY = 1e300  # a tolerance that allows all but infinite differences
# Two-sided quantiles at 99.9 % for 1, 2, 3 ... degrees of freedom
_QUANTILES = (636.6, 31.6, 12.92, 8.61, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587)
_NOT_ROUNDED = (INPUT, FEED)
_IN_STEPS = (FETCH, SUMMARY, LOG, CALL, RESULT, METRIC, PREDICTION)
_ANY_FINITE = 4.0  # a finite relative difference is at most 2, and is estimated
_EQUAL_SHARE = 0.05  # of values that perturbed runs leave equal; a float32 number is left so in one of a thousand cases


@dataclass(frozen=True)
class HalfBand(Allowance):
    """The band of each value.

    Attributes:
        by_stream: kind and name -> the band of each value of the stream, without u of values that are rounded.
        roundoff: u.
        in_steps: kind and name of streams that move in steps, as an accuracy does, so that no band holds them.
        updated: kind and name of variables that an optimizer updates, and of their slots.
        beyond: further limits, where they are wider.
    """

    by_stream: dict[tuple[str, str], np.ndarray]
    roundoff: float
    in_steps: frozenset[tuple[str, str]]
    updated: frozenset[tuple[str, str]]
    beyond: Allowance = Limits()

    def has_band(self, stream: Stream) -> bool:
        """Return False for a stream of which only Inf and NaN are differences."""
        key = (stream.kind, stream.name)
        return key not in self.in_steps and key not in self.updated

    def widened_limit(self, limit: float, stream: Stream, place: int, step: int) -> float:
        """Return the difference that is allowed for a value.

        Args:
            limit: what is allowed in float32.
            stream, place: of the float32 run, and the place of the value among those that were compared.
            step: of the value.
        """
        limit = self.beyond.widened_limit(limit, stream, place, step)
        key = (stream.kind, stream.name)
        bands = self.by_stream.get(key, np.zeros(0))
        if not self.has_band(stream):
            return _ANY_FINITE
        if stream.kind == RATE or not bands.size:
            return limit
        band = float(bands[min(place, bands.size - 1)])
        is_float = stream.dtype.startswith(("float", "bfloat", "complex"))
        return max(limit, band + (self.roundoff if is_float and stream.kind not in _NOT_ROUNDED else 0.0))


def perturbation_size(dtype: str, ops: int, values: int) -> float:
    """Return the size of the perturbation.

    Args:
        dtype: float16 or bfloat16.
        ops: number of ops in 16 bits.
        values: number of values that are perturbed.
    """
    return ROUNDOFF[dtype] * math.sqrt(max(1.0, ops / max(values, 1)))


def student_t_quantile(runs: int) -> float:
    """Return t for a number of perturbed runs."""
    return _QUANTILES[min(runs, len(_QUANTILES)) - 1]


def band_of_perturbed_runs(dtype: str, perturbed: Sequence[Comparison]) -> HalfBand:
    """Return the band.

    Args:
        dtype: float16, bfloat16, or float32 for runs in float32 that round differently.
        perturbed: the float32 run, compared with each of the perturbed runs.
    """
    squares: dict[tuple[str, str], list[np.ndarray]] = {}
    for comparison in perturbed:
        for pair in comparison.compared:
            values = np.array([difference for _, difference in pair.differences])
            squares.setdefault((pair.original.kind, pair.original.name), []).append(values)
    by_stream = {}
    in_steps = set()
    streams = {(pair.original.kind, pair.original.name): pair.original for pair in perturbed[0].compared}
    for key, several in squares.items():
        length = min(map(len, several))
        stacked = np.stack([values[:length] for values in several]) if length else np.zeros((1, 0))
        if dtype != "float32" and _takes_discrete_values(streams[key], stacked):
            in_steps.add(key)
        largest = np.maximum.accumulate(stacked, axis=1)
        by_stream[key] = student_t_quantile(len(perturbed)) * np.sqrt(np.mean(largest**2, axis=0))
    names = [name for kind, name in streams if kind == VARIABLE and dtype != "float32"]
    updated = {(VARIABLE, name) for name in names}
    updated |= {key for key in streams if key[0] == UNTRAINED and dtype != "float32"}
    updated |= {key for key in streams if key[0] == FINAL and any(f"/{name}/" in f"/{key[1]}/" for name in names)}
    return HalfBand(by_stream, ROUNDOFF[dtype], frozenset(in_steps), frozenset(updated))


def _takes_discrete_values(stream: Stream, differences: np.ndarray) -> bool:
    """Return True for classes, and for numbers that perturbed runs leave equal bit by bit, as an accuracy."""
    if stream.kind not in _IN_STEPS or not differences.size:
        return False
    is_scalar = stream.values[0].shape == ()
    if not stream.dtype.startswith(("float", "bfloat", "complex")):
        return not is_scalar or bool(differences.any())
    return is_scalar and float(np.mean(differences == 0)) > _EQUAL_SHARE
