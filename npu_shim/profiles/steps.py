"""The steps of a device: their phases, by the step trace or by the ops that run once in each."""

from __future__ import annotations

import math
from typing import Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from npu_shim.profiles.kinds import HOST, INPUT, Signature

Span = Tuple[int, int]  # start and duration

TRACED, MARKED, NUMBERED, INFERRED, WHOLE = (
    "step_trace", "STEP_TIME", "Step Id", "ops that run once in each step", "the whole profile"
)  # fmt: skip
PHASES = ("data", "forward and backward", "gradient refresh")
SLOW = 3  # times the median of other steps
_LEAST = 3  # steps
_END = 1 << 62  # nanoseconds


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


def traced(rows: Sequence[Mapping[str, Sequence[str]]], units: Mapping[str, int]) -> tuple[Steps | None, list[Span]]:
    """Return the steps of rows of a step trace, None if no row has an end, and start and duration of its messages.

    The exporter computes Iteration Refresh as the end of an iteration minus that of the backward pass, and Data Aug
    Bound as the start of the forward pass minus the end of the iteration before it, whichever its model. So do the
    phases here. Steps are those of the model that takes the longest. The first has no data phase, so it counts only if
    there is no other.
    """
    times = [[_time(row, column) for column in ("fp_start", "bp_end", "end", "time")] for row in rows]
    kept = sorted((time[2], place) for place, time in enumerate(times) if time[2] > 0)
    scale = units.get("end") or _scale(times, [place for _, place in kept])
    found: dict[str, list[list[int]]] = {}
    messages: list[Span] = []
    before = 0
    for end, place in kept:
        fp_start, bp_end, _, took = times[place]
        end, fp_start, bp_end = (each * scale // 1000 for each in (end, fp_start, bp_end))
        start = before or (end - took if 0 < took < end else fp_start)
        before = end if len(kept) > 1 else 0
        if not 0 < start < end < _END or place == kept[0][1] and before:
            continue
        fp_start = min(max(fp_start, start), end) if fp_start else start
        bp_end = min(max(bp_end, fp_start), end) if bp_end else end
        model = (rows[place].get("model") or [""])[0]
        found.setdefault(model, []).append([start, fp_start, bp_end, end])
        messages += _messages(rows[place], scale)
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


def _time(row: Mapping[str, Sequence[str]], column: str, number: int = 0) -> int:
    """Return a time in thousandths of its unit, 0 if the row has none."""
    cells = row.get(column, [])
    try:
        whole, _, part = cells[number].partition(".")
        return int(whole) * 1000 + int((part + "000")[:3])
    except (IndexError, ValueError):
        return 0


def _scale(times: Sequence[Sequence[int]], order: Sequence[int]) -> int:
    """Return the nanoseconds of the unit of times whose head has none, by the durations beside them."""
    ends = [times[place][2] for place in order]
    apart = [(ends[n] - ends[n - 1], times[place][3]) for n, place in enumerate(order) if n]
    quotients = [distance / took for distance, took in apart if took > 0]
    if not quotients:
        return 1000
    quotient = max(float(np.median(quotients)), 1e-9)
    return min((1, 10, 1000), key=lambda unit: abs(math.log(quotient * unit / 1000)))


def _messages(row: Mapping[str, Sequence[str]], scale: int) -> list[Span]:
    found = []
    for number in range(len(row.get("reduce_start", []))):
        start, took = _time(row, "reduce_start", number), _time(row, "reduce_duration", number)
        if took > 1 << 62:  # CANN 8 and 9 subtract the end of a step's first message from its start, unsigned
            took = (1 << 64) - took
        if 0 < start * scale // 1000 < _END and 0 < took < _END:
            found.append((start * scale // 1000, took))
    return found
