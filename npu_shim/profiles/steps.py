"""The steps of a device: their phases, by the step trace or by the ops that run once in each."""

from __future__ import annotations

import math
from typing import Mapping, NamedTuple, Sequence

import numpy as np

from npu_shim.profiles.kinds import HOST, INPUT

TRACED, MARKED, NUMBERED, INFERRED, WHOLE = (
    "step_trace", "STEP_TIME", "Step Id", "ops that run once in each step", "the whole profile"
)  # fmt: skip
PHASES = ("data", "forward and backward", "gradient refresh")
_LEAST = 3  # steps
_END = 1 << 62  # nanoseconds


class Steps(NamedTuple):
    """The steps of a device.

    Attributes:
        edges: for each step its start, the start of the forward pass, the end of the backward pass, and its end, in
            nanoseconds. A step begins where the one before it ends.
        source: what says so.
    """

    edges: np.ndarray
    source: str


class Messages(NamedTuple):
    """The messages of gradients of a step trace, in nanoseconds."""

    start: np.ndarray
    duration: np.ndarray


def traced(rows: Sequence[Mapping[str, Sequence[str]]], units: Mapping[str, int]) -> tuple[Steps, Messages] | None:
    """Return the steps of rows of a step trace; None if no row has an end.

    The exporter computes Iteration Refresh as the end of an iteration minus that of the backward pass, and Data Aug
    Bound as the start of the forward pass minus the end of the iteration before it, whichever its model. So do the
    phases here. Steps are those of the model that takes the longest. The first has no data phase, so it counts only if
    there is no other.
    """
    times = [[_time(row, column) for column in ("fp_start", "bp_end", "end", "time")] for row in rows]
    kept = sorted((time[2], place) for place, time in enumerate(times) if time[2] > 0)
    scale = units.get("end") or _scale(times, [place for _, place in kept])
    found: dict[str, list[list[int]]] = {}
    messages: list[tuple[int, int]] = []
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
        return None
    longest = max(found.values(), key=lambda steps: sum(step[3] - step[0] for step in steps))
    of_steps = np.array(sorted(messages), np.int64).reshape(-1, 2)
    return Steps(np.array(longest, np.int64), TRACED), Messages(of_steps[:, 0], of_steps[:, 1])


def inferred(code: np.ndarray, start: np.ndarray, end: np.ndarray, names: np.ndarray, category: np.ndarray) -> Steps:
    """Return the steps of runs that are sorted by start.

    Args:
        code, start, end: of the runs.
        names: the number of the name of each signature.
        category: of each signature.
    """
    last = max(int(end.max()), int(start[0]) + 1)
    whole = Steps(np.array([[start[0], start[0], last, last]], np.int64), WHOLE)
    name = names[code]
    counts = np.bincount(name)
    several = counts[counts >= _LEAST]
    number = int(np.bincount(several).argmax()) if len(several) else 0
    if number < _LEAST or 2 * np.count_nonzero(counts == number) < np.count_nonzero(counts):
        return whole
    first = name[np.flatnonzero(counts[name] == number)[0]]
    begins = np.flatnonzero(name == first)
    ends = np.maximum.reduceat(end, begins)
    before = np.concatenate(([start[begins[0]]], ends[:-1]))
    forward = _forward(code, start, category, before, ends)
    return Steps(np.stack([before, forward, ends, ends], 1), INFERRED) if np.all(before < ends) else whole


def numbered(
    code: np.ndarray, start: np.ndarray, end: np.ndarray, ids: np.ndarray, category: np.ndarray
) -> Steps | None:
    """Return the steps of runs whose rows have the number of the step; None if one has none.

    Args:
        code, start, end: of the runs.
        ids: the number of each signature, as text.
        category: of each signature.
    """
    known, place = np.unique(ids[code], return_inverse=True)
    if "" in known:
        return None
    begins, ends = np.full(len(known), _END), np.zeros(len(known), np.int64)
    np.minimum.at(begins, place, start)
    np.maximum.at(ends, place, end)
    ends = np.sort(ends)
    before = np.concatenate(([begins.min()], ends[:-1]))
    forward = _forward(code, start, category, before, ends)
    return Steps(np.stack([before, forward, ends, ends], 1), NUMBERED) if np.all(before < ends) else None


def marked(marks: np.ndarray, code: np.ndarray, start: np.ndarray, category: np.ndarray) -> Steps | None:
    """Return the steps of rows with a start and an end; None without rows."""
    if not len(marks):
        return None
    forward = _forward(code, start, category, marks[:, 0], marks[:, 1])
    return Steps(np.stack([marks[:, 0], forward, marks[:, 1], marks[:, 1]], 1), MARKED)


def _forward(
    code: np.ndarray, start: np.ndarray, category: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return the start of the first op of each step that neither reads data nor is Python."""
    work = start[~np.isin(category, [INPUT, HOST])[code]]
    if not len(work):
        return begin
    return np.clip(work[np.minimum(np.searchsorted(work, begin), len(work) - 1)], begin, end)


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


def _messages(row: Mapping[str, Sequence[str]], scale: int) -> list[tuple[int, int]]:
    found = []
    for number in range(len(row.get("reduce_start", []))):
        start, took = _time(row, "reduce_start", number), _time(row, "reduce_duration", number)
        if took > 1 << 62:  # CANN 8 and 9 subtract the end of a step's first message from its start, unsigned
            took = (1 << 64) - took
        if 0 < start * scale // 1000 < _END and 0 < took < _END:
            found.append((start * scale // 1000, took))
    return found
