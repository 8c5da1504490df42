"""The steps of a device: their phases, by the step trace or by the ops that run once in each."""

from __future__ import annotations

import math
from typing import Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from npu_shim.profiles import columns
from npu_shim.profiles.kinds import HOST, INPUT, Signature

Span = Tuple[int, int]  # start and duration

TRACED, MARKED, NUMBERED, INFERRED, WHOLE = (
    "step_trace", "STEP_TIME", "Step Id", "ops that run once in each step", "the whole profile"
)  # fmt: skip
PHASES = ("data", "forward and backward", "gradient refresh")
SLOW = 3  # times the median of other steps
_LEAST = 3  # steps
_END = 1 << 62  # nanoseconds
_WRAPS = 1 << 64


class Steps(NamedTuple):
    """The steps of a device.

    Attributes:
        edges: for each step its start, the start of the forward pass, the end of the backward pass, and its end, in
            nanoseconds. A step begins where the one before it ends.
        source: what says so.
        left_out: the number of steps before them that compile or warm up.
    """

    edges: np.ndarray
    source: str
    left_out: int = 0


def traced(rows: Sequence[Mapping[str, str]], unit: int) -> tuple[Steps | None, list[Span]]:
    """Return the steps of rows of a step trace, None if no row has an end, and start and duration of its messages.

    The exporter computes Iteration Refresh as the end of an iteration minus that of the backward pass, and Data Aug
    Bound as the start of the forward pass minus the end of the iteration before it, whichever its model. So do the
    phases here. Steps are those of the model that takes the longest. The first has no data phase, so it counts only if
    there is no other.
    """
    marked = [([_time(row.get(column, "")) for column in ("end", "fp_start", "bp_end", "time")], row) for row in rows]
    kept = sorted((each for each in marked if each[0][0] > 0), key=lambda each: each[0][0])
    scale = unit or _scale(np.array([(end, took) for (end, _, _, took), _ in kept], float).reshape(-1, 2))
    found: dict[str, list[list[int]]] = {}
    messages: list[Span] = []
    before = 0
    for number, ((*moments, took), row) in enumerate(kept):
        end, fp_start, bp_end = (each * scale // 1000 for each in moments)
        start = before or (end - took if 0 < took < end else fp_start)
        before = end if len(kept) > 1 else 0
        if not 0 < start < end < _END or (before and not number):
            continue
        fp_start = min(max(fp_start, start), end) if fp_start else start
        bp_end = min(max(bp_end, fp_start), end) if bp_end else end
        found.setdefault(row.get("model", ""), []).append([start, fp_start, bp_end, end])
        messages += _messages(row, scale)
    if not found:
        return None, []
    longest = max(found.values(), key=lambda steps: sum(step[3] - step[0] for step in steps))
    return Steps(np.array(longest, np.int64), TRACED), sorted(messages)


def find(
    code: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    signatures: Sequence[Signature],
    category: np.ndarray,
    marks: np.ndarray,
) -> Steps:
    """Return the steps of runs without a step trace.

    Args:
        code, start, end: of the runs, sorted by start.
        signatures: the ops.
        category: of each signature.
        marks: start and end of the steps that a data base marks.
    """
    last = max(int(end.max()), int(start[0]) + 1)
    bounds = [(MARKED, marks[:, 0], marks[:, 1])] if len(marks) else []
    for source, step in ((NUMBERED, _by_number(code, signatures)), (INFERRED, _by_name(code, signatures))):
        if step is not None:
            inside = step >= 0
            ends = np.zeros(step.max() + 1, np.int64)
            np.maximum.at(ends, step[inside], end[inside])
            ends.sort()
            bounds.append((source, np.concatenate(([start[inside].min()], ends[:-1])), ends))
    work = start[~np.isin(category, [INPUT, HOST])[code]]
    for source, before, ends in bounds:
        if (before < ends).all():  # the forward pass starts with the first op that neither reads data nor is Python
            forward = work[np.minimum(np.searchsorted(work, before), len(work) - 1)] if len(work) else before
            return Steps(np.stack([before, np.clip(forward, before, ends), ends, ends], 1), source)
    return Steps(np.array([[start[0], start[0], last, last]], np.int64), WHOLE)


def _by_number(code: np.ndarray, signatures: Sequence[Signature]) -> np.ndarray | None:
    """Return the step of each run by the number in its row; None if a run has none."""
    known, number = np.unique([each.step for each in signatures], return_inverse=True)
    used, step = np.unique(number[code], return_inverse=True)
    return step if (known[used] != "").all() else None


def _by_name(code: np.ndarray, signatures: Sequence[Signature]) -> np.ndarray | None:
    """Return the step of each run by the ops that run once in each, -1 before the first; None without such ops."""
    names = np.unique([each.name for each in signatures], return_inverse=True)[1][code]
    counts = np.bincount(names)
    several = counts[counts >= _LEAST]
    number = int(np.bincount(several).argmax()) if len(several) else 0
    if number < _LEAST or 2 * np.count_nonzero(counts == number) < np.count_nonzero(counts):
        return None
    first = names[np.flatnonzero(counts[names] == number)[0]]
    return np.cumsum(names == first) - 1


def chosen(steps: Steps, window: Sequence[float]) -> Steps:
    """Return the steps within a window of time, if there are any, without those at the begin that are slow.

    The first steps compile and warm up; each takes several times as long as those behind it.
    """
    edges = steps.edges
    kept = np.flatnonzero((edges[:, 0] >= window[0]) & (edges[:, -1] <= window[1])) if window else edges[:0, 0]
    first, until = (kept[0], kept[-1] + 1) if len(kept) else (0, len(edges))
    length = (edges[:, -1] - edges[:, 0])[:until]
    while until - first > _LEAST and length[first] > SLOW * np.median(length[first + 1 :]):
        first += 1
    return Steps(edges[first:until], steps.source, int(first))


def _time(cell: str) -> int:
    """Return a time in thousandths of its unit, 0 for a cell without one."""
    try:
        return columns.shifted(cell, 3, 1 << 90)
    except (ValueError, OverflowError):
        return 0


def _scale(times: np.ndarray) -> int:
    """Return the nanoseconds of the unit of ends whose head has none, by the durations beside them."""
    known = times[1:, 1] > 0
    quotients = np.diff(times[:, 0])[known] / times[1:, 1][known]
    quotient = max(float(np.median(quotients)), 1e-9) if len(quotients) else 1
    return min((1, 10, 1000), key=lambda unit: abs(math.log(quotient * unit / 1000)))


def _messages(row: Mapping[str, str], scale: int) -> list[Span]:
    found = []
    cells = zip(*(row.get(column, "").split() for column in ("reduce_start", "reduce_duration")))
    for start, took in (map(_time, each) for each in cells):
        if took > _END:  # CANN 8 and 9 subtract the end of a step's first message from its start, unsigned
            took = _WRAPS - took
        if 0 < start * scale // 1000 < _END and 0 < took < _END:
            found.append((start * scale // 1000, took))
    return found
