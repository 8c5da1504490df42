"""The steps of a device: their phases, by the step trace or by the ops that run once in each."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Sequence, Tuple

import numpy as np

from npu_shim.profiles.op_kinds import HOST, INPUT, Signature
from npu_shim.profiles.runs import END, Runs
from npu_shim.profiles.table_forms import TableRow

TRACED, MARKED, NUMBERED = "step_trace", "STEP_TIME", "Step Id"
INFERRED, WHOLE = "ops that run once in each step", "the whole profile"
StartAndDuration = Tuple[int, int]  # nanoseconds
PHASES = ("data", "forward and backward", "gradient refresh")
SLOW = 3  # times the median of other steps
_LEAST = 3  # steps


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


def steps_and_messages_of_trace(rows: Iterable[TableRow]) -> tuple[Steps | None, list[StartAndDuration]]:
    """Return the steps of rows of a step trace, None if no row has an end, and start and duration of its messages.

    The exporter computes Iteration Refresh as the end of an iteration minus that of the backward pass, and Data Aug
    Bound as the start of the forward pass minus the end of the iteration before it, whichever its model. So do the
    phases here. Steps are those of the model that takes the longest. The first has no data phase, so it counts only if
    there is no other.
    """
    kept = sorted((row for row in rows if row.times["end"][0] > 0), key=lambda row: row.times["end"][0])
    by_model: dict[str, list[list[int]]] = {}
    messages: list[StartAndDuration] = []
    before = 0
    for number, row in enumerate(kept):
        end, took, forward, backward = (sum(row.times[name][:1]) for name in ("end", "time", "fp_start", "bp_end"))
        start = before or (end - took if 0 < took < end else forward)
        before = end if len(kept) > 1 else 0
        if not 0 < start < end < END or (before and not number):
            continue
        forward = min(max(forward, start), end) if forward else start
        backward = min(max(backward, forward), end) if backward else end
        by_model.setdefault(row.cells.get("model", ""), []).append([start, forward, backward, end])
        for begin, length in zip(row.times["reduce_start"], row.times["reduce_duration"]):
            # CANN 8 and 9 subtract the end of a step's first message from its start, unsigned
            length = (1 << 64) - length if length > END else length
            messages += [(begin, length)] if 0 < begin < END and 0 < length < END else []
    if not by_model:
        return None, []
    longest = max(by_model.values(), key=lambda steps: sum(step[3] - step[0] for step in steps))
    return Steps(np.array(longest, np.int64), TRACED), sorted(messages)


def find_steps(columns: Sequence[np.ndarray], runs: Runs) -> Steps:
    """Return the steps without a step trace, by the marks of a data base, the numbers in rows, or the names of ops.

    Args:
        columns: signature, start and end of each run, sorted by start.
        runs: of the source, with the signatures.
    """
    code, start, end = columns
    bounds = [(MARKED, *runs.marks.T)] if len(runs.marks) else []
    for source, step in (
        (NUMBERED, _steps_by_number(code, runs.signatures)),
        (INFERRED, _steps_by_op_name(code, runs.signatures)),
    ):
        if step is not None:
            ends = np.zeros(step.max() + 1, np.int64)
            np.maximum.at(ends, step[step >= 0], end[step >= 0])
            ends.sort()
            bounds.append((source, np.append(start[step >= 0].min(), ends[:-1]), ends))
    work = start[~np.isin(runs.category, [INPUT, HOST])[code]]
    for source, before, ends in bounds:
        if (before < ends).all():  # the forward pass starts with the first op that neither reads data nor is Python
            forward = work[np.minimum(np.searchsorted(work, before), len(work) - 1)] if len(work) else before
            return Steps(np.stack([before, np.clip(forward, before, ends), ends, ends], 1), source)
    last = max(int(end.max()), int(start[0]) + 1)
    return Steps(np.array([[start[0], start[0], last, last]], np.int64), WHOLE)


def _steps_by_number(code: np.ndarray, signatures: Sequence[Signature]) -> np.ndarray | None:
    """Return the step of each run by the number in its row; None if a run has none."""
    known, number = np.unique([signature.step for signature in signatures], return_inverse=True)
    used, step = np.unique(number[code], return_inverse=True)
    return step if (known[used] != "").all() else None


def _steps_by_op_name(code: np.ndarray, signatures: Sequence[Signature]) -> np.ndarray | None:
    """Return the step of each run by the ops that run once in each, -1 before the first; None without such ops."""
    names = np.unique([signature.name for signature in signatures], return_inverse=True)[1][code]
    counts = np.bincount(names)
    number = int(np.bincount(counts[counts >= _LEAST], minlength=1).argmax())
    if number < _LEAST or 2 * np.count_nonzero(counts == number) < np.count_nonzero(counts):
        return None
    first = names[np.flatnonzero(counts[names] == number)[0]]
    return np.cumsum(names == first) - 1


def steps_in_windows(steps: Steps, windows: Sequence[TableRow]) -> Steps:
    """Return the steps within windows of time, if there are any, without those at the begin that are slow.

    The first steps compile and warm up; each takes several times as long as those behind it.
    """
    edges = steps.edges
    inside = [(edges[:, 0] >= row.times["begin"][0]) & (edges[:, -1] <= row.times["end"][0]) for row in windows]
    kept = np.flatnonzero(np.any(inside, axis=0)) if np.any(inside) else np.arange(len(edges))
    first, until = kept[0], kept[-1] + 1
    length = (edges[:, -1] - edges[:, 0])[:until]
    while until - first > _LEAST and length[first] > SLOW * np.median(length[first + 1 :]):
        first += 1
    return Steps(edges[first:until], steps.source, int(first))
