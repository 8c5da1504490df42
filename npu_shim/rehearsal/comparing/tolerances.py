"""Differences of digests, and which of them are allowed.

    difference = |x - y| / max(|x|, |y|, 1e-3 * the largest |x| or |y| of this stream so far)

with Euclidean norms, where |x - y| is estimated from the digests (exactly up to 32 elements). The last term keeps the
rounding of values near zero from counting.

    allowed(step) = tolerance * (1 + step / 100)

Original and migrated script round differently: a gradient is computed by another formula, an op is fused. Training
carries such differences on and enlarges them, so the allowance grows with the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu_shim.rehearsal.comparing import TOLERANCE
from npu_shim.rehearsal.comparing.read_recording import Stream
from npu_shim.rehearsal.recording.digest import HEAD, NORM, NOT_FINITE, elements_from_digest
from npu_shim.rehearsal.recording.kinds import LOG, METRIC, PREDICTION, PRINT, RATE, RESULT, SUMMARY

BY_TYPE = {"float64": 1e-4, "complex128": 1e-4, "float16": 200.0, "bfloat16": 1000.0}  # as factors
_LOOSE = 0.1  # where a rounding difference may have changed the branch of a ReLU or a maximum
_GROWTH_STEPS = 100
_FLOOR = 1e-3


class Allowance:
    """Differences that are allowed beyond the tolerance."""

    def widened_limit(self, limit: float, stream: Stream, place: int, step: int) -> float:
        """Return the difference that is allowed for a value at a step.

        Args:
            limit: of allowed().
            stream: of the value.
            place: of the value among those that are compared.
            step: of the value.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Limits(Allowance):
    """Wider limits for variables and late steps.

    Attributes:
        loose_from: the step from which only large differences of floats count, except those of learning rates.
        enlarged: the limits of floats before it, in multiples, except those of learning rates.
    """

    loose_from: int | None = None
    enlarged: float = 1.0

    def widened_limit(self, limit: float, stream: Stream, place: int, step: int) -> float:
        """Return the difference that is allowed for a value at a step; see Allowance."""
        kind = stream.kind
        if kind == RATE or not (limit or kind == PREDICTION):
            return limit
        is_strict = self.loose_from is None or step < self.loose_from
        return limit * self.enlarged if is_strict else max(limit, _LOOSE)


def allowed_difference(dtype: str, kind: str, step: int, tolerance: float = TOLERANCE) -> float:
    """Return the difference that is allowed for a value at a step; 0 for integers and bools.

    Args:
        dtype: name of its type.
        kind: its kind; logs and metrics are float32, also where Python has made them float64.
        step: the training step, from 0.
        tolerance: that of float32 at the first step.
    """
    if not dtype.startswith(("float", "bfloat", "complex")):
        return 0.0
    factor = 1.0 if kind in (LOG, RESULT, METRIC, SUMMARY, PRINT) else BY_TYPE.get(dtype, 1.0)
    return tolerance * factor * (1 + step / _GROWTH_STEPS)


def digest_distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the estimated norm of the difference of two tensors; infinite if Inf or NaN are in different elements.

    Args:
        one, other: digests of tensors of the same shape.
    """
    if np.array_equal(one, other):
        return 0.0  # also if sums are infinite
    if one[NOT_FINITE] != other[NOT_FINITE]:
        return float("inf")
    return float(np.linalg.norm(one[HEAD:] - other[HEAD:]))


def relative_difference(one: np.ndarray, other: np.ndarray, largest: float) -> float:
    """Return the difference of two tensors.

    Args:
        one, other: digests of tensors of the same shape.
        largest: the largest norm of the two streams so far.
    """
    far = digest_distance(one, other)
    scale = max(one[NORM], other[NORM], _FLOOR * largest)
    return far / scale if far else 0.0


def printed_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the difference of two printed numbers, beyond what rounding to their last digits explains.

    Args:
        one, other: digests of a number and the unit of its last digit.
    """
    few = elements_from_digest(one, (2,)), elements_from_digest(other, (2,))
    if few[0] is None or few[1] is None:
        return digest_distance(one, other)  # Inf or NaN
    (x, unit), (y, other_unit) = few[0], few[1]
    return float(max(abs(x - y) - 1.001 * max(unit, other_unit), 0) / max(abs(x), abs(y), _FLOOR))
