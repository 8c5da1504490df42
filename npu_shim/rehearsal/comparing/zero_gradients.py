"""Gradients that are zero but for rounding, and the variables that only such gradients update.

A bias of the keys in attention, or one before batch normalization, does not change the loss. Its gradient is zero, and
the computed one is the rounding of a sum, which differs between two programs by as much as itself. An optimizer that
divides by the size of gradients, as Adam does, then moves the variable by its rate in directions without meaning. The
gradient of a step is therefore also judged as one vector. A tensor that departs is zero but for rounding if, in both
scripts,

    |x| <= tolerance * sqrt(sum of |g|^2 over all gradients g of the step)

It cannot change this vector by more than any tensor may differ.

Such an optimizer also turns the rounding of a single element near zero into a step: 2.4e-5 of a bias that begins with
zeros, in a vision transformer of which one script knows the batch size. So a variable may differ by ten times as much
as other values from the first step at which its gradient differs at all.
"""

from __future__ import annotations

import collections
import math
from typing import Dict, Tuple

from npu_shim.rehearsal.comparing.read_recording import Recording, Stream, Value
from npu_shim.rehearsal.recording.digest import NORM
from npu_shim.rehearsal.recording.kinds import FINAL, GRADIENT, TAPE, UNTRAINED, VARIABLE
from npu_shim.rehearsal.recording.names import OF_OPTIMIZER

_ENLARGED = 10.0
_Norms = Dict[Tuple[str, int], float]  # by kind and step


class ZeroGradients:
    """Knows which departures of two recordings are those of gradients that are zero but for rounding.

    Args:
        original, migrated: the recordings.
        tolerance: see above.
    """

    def __init__(self, original: Recording, migrated: Recording, tolerance: float) -> None:
        self._norms = _gradient_norms(original), _gradient_norms(migrated)
        self._tolerance = tolerance
        self._inexact: dict[str, int] = {}  # variable -> first step at which its gradient differs
        self._first: dict[str, int] = {}  # variable -> first step at which its gradient is rounding
        self._last: dict[str, float] = {}  # variable -> first step at which its gradient departs by more

    def note_difference(self, stream: Stream, step: int, difference: float) -> None:
        """Take note of a difference."""
        if stream.kind == GRADIENT and difference:
            self._inexact.setdefault(stream.name.partition(OF_OPTIMIZER)[0], step)

    def allowance_factor(self, stream: Stream, step: int) -> float:
        """Return what is allowed for a value, in multiples of the allowance of other values."""
        first = math.inf
        if stream.kind == VARIABLE:
            first = self._inexact.get(stream.name, math.inf)
        elif stream.kind == UNTRAINED:  # an average of variables, or a statistic of what they compute
            first = min(self._inexact.values(), default=math.inf)
        return _ENLARGED if first <= step else 1.0

    def note_and_explain_departure(self, stream: Stream, a: Value, b: Value) -> bool:
        """Return True if a departure is that of a gradient that is zero but for rounding, or follows from such ones.

        Args:
            stream: of the original. Gradients come before variables, and each stream in the order of its steps.
            a, b: a value of it and its partner, which departs.
        """
        if stream.kind == TAPE:
            return self._are_zero_gradients(stream, a, b)
        if stream.kind == GRADIENT:
            name = stream.name.partition(OF_OPTIMIZER)[0]
            is_zero = self._are_zero_gradients(stream, a, b)
            if is_zero:
                self._first.setdefault(name, a.step)
            else:
                self._last.setdefault(name, a.step)
            return is_zero
        if stream.kind == VARIABLE:
            return self._first.get(stream.name, math.inf) <= a.step < self._last.get(stream.name, math.inf)
        if stream.kind == UNTRAINED:
            return min(self._first.values(), default=math.inf) <= a.step
        if stream.kind == FINAL:  # slots of an optimizer have the name of their variable as a part of theirs
            return any(f"/{name}/" in f"/{stream.name}/" for name in self.zero_gradient_variables())
        return False

    def zero_gradient_variables(self) -> list[str]:
        """Return the variables whose gradients depart, but only where they are zero but for rounding."""
        return [name for name in self._first if name not in self._last]

    def _are_zero_gradients(self, stream: Stream, a: Value, b: Value) -> bool:
        ours, theirs = (norms.get((stream.kind, a.step), 0.0) for norms in self._norms)
        return bool(a.digest[NORM] <= self._tolerance * ours and b.digest[NORM] <= self._tolerance * theirs)


def _gradient_norms(recording: Recording) -> _Norms:
    """Return the norm of all gradients of each step."""
    squares: _Norms = collections.defaultdict(float)
    for kind in (GRADIENT, TAPE):
        for stream in recording.streams_of_kind(kind):
            for value in stream.values:
                squares[kind, value.step] += value.digest[NORM] ** 2
    return {key: square**0.5 for key, square in squares.items()}
