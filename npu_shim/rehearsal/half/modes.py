"""The ops that compute in 16 bits, by precision_mode and the lists of mixed precision."""

from __future__ import annotations

from typing import Callable, Mapping

from npu_shim.rehearsal.assess import operators
from npu_shim.rehearsal.assess.op_types import op_types_in_table
from npu_shim.rehearsal.assess.operators import DEVICE, UNCLEAR, Lists
from npu_shim.rehearsal.assess.work import MATRIX
from npu_shim.rehearsal.precision_modes import FORCED, LOWERED, MATRIX_INPUTS, MIXED

HALF, FLOAT, FOLLOWS, INPUTS = "half", "float", "follows", "inputs"  # INPUTS: rounds its inputs only

# These hold or hand on values, tell whether they are finite, or run other ops.
_NEVER = op_types_in_table("never in 16 bits")


def _precision_when_mixed(lists: Lists, op: str) -> str:
    return {"reduce": HALF, "keep": FLOAT}.get(lists.precision_rule(op), FOLLOWS)


def _precision_when_forced(lists: Lists, op: str) -> str:
    return FLOAT if "Apply" in op else HALF


MODES: Mapping[str, Callable[[Lists, str], str]] = {
    MIXED: _precision_when_mixed,
    LOWERED: lambda lists, op: HALF if MATRIX.match(op) else FLOAT,
    FORCED: _precision_when_forced,
    MATRIX_INPUTS: lambda lists, op: INPUTS if MATRIX.match(op) else FLOAT,
}


class Mode:
    """The precision of each op type.

    Args:
        name: a key of MODES.
        mixlist: a file with changes of the lists, as for the option modify_mixlist; None without.
    Raises:
        ValueError: there is no such mode, or the file has another form.
    """

    def __init__(self, name: str = MIXED, mixlist: str | None = None) -> None:
        if name not in MODES:
            raise ValueError(f"precision_mode={name!r} is not allowed: it must be one of {', '.join(MODES)}.")
        self._decide = MODES[name]
        self._lists = operators.built_in_lists()
        if mixlist is not None:
            self._lists = operators.with_mixlist_changes(self._lists, mixlist)

    def precision_of(self, op: str) -> str:
        """Return HALF, FLOAT, FOLLOWS or INPUTS for an op type."""
        if op in _NEVER or self._lists.device_status(op) not in (DEVICE, UNCLEAR):
            return FLOAT
        return self._decide(self._lists, op)
