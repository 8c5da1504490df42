"""The lines that show the ranks of a job."""

from __future__ import annotations

import re
import signal
import statistics
import unicodedata
from typing import Sequence

from npu_shim.launching.progress.status import Status

IDLE_S = 5.0  # a rank without a step for this time, and for ten steps, is idle
_BALANCED = 0.01  # share of a step that two ranks may differ
_GAP = "  "
_KEPT = 2  # columns that are never left out: rank and step
_FOLDERS = re.compile(r"at .*/(?=[^/]+:\d+)")


def rank_lines(ranks: Sequence[Status], width: int | None = None, height: int | None = None) -> list[str]:
    """Return one line for each rank.

    Args:
        ranks: their status, in the order of the ranks.
        width: columns of the terminal. Values for which there is no room are left out, and long lines are cut. None for
            no limit.
        height: the largest number of lines; ranks that do not fit are counted in the last one. None for no limit.
    """
    shown = list(ranks)
    if height is not None and len(shown) > height:
        shown = _most_telling_ranks(shown, height - 1)
    remarks = {status.rank: _remark_text(status, ranks) for status in ranks}
    rows = [_cell_texts(status) for status in shown]
    drawn = _joined_lines(rows, [remarks[status.rank] for status in shown])
    while width is not None and max(map(len, drawn), default=0) > width and len(rows[0]) > _KEPT:
        rows = [cells[:-1] for cells in rows]
        drawn = _joined_lines(rows, [remarks[status.rank] for status in shown])
    if len(shown) < len(ranks):
        drawn.append(f"and {len(ranks) - len(shown)} more ranks")
    return drawn if width is None else [cut_to_width(line, width) for line in drawn]


def slowest_rank(ranks: Sequence[Status]) -> tuple[int, float, float] | None:
    """Return the rank with the longest steps, without the time in which it waits for others.

    Returns:
        The rank, the seconds of a step by which it exceeds the mean of the others, and their share of that mean; None
        with fewer than two ranks, or if the difference is below a hundredth.
    """
    times = {status.rank: status.own_step_s for status in ranks if status.own_step_s and not status.code}
    if len(times) < 2:
        return None
    rank = max(times, key=lambda candidate: times[candidate] or 0.0)
    others = statistics.mean([value or 0.0 for other, value in times.items() if other != rank])
    excess = (times[rank] or 0.0) - others
    return (rank, excess, excess / others) if excess > _BALANCED * others else None


def cut_to_width(line: str, width: int) -> str:
    """Return a line cut to a number of columns."""
    columns = 0
    for place, character in enumerate(line):
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns > width:
            return line[:place]
    return line


def is_idle(status: Status) -> bool:
    """Return True for a rank that has made no step for a long time."""
    return status.code is None and status.idle_s > max(IDLE_S, 10.0 / status.rate if status.rate else 0.0)


def _joined_lines(rows: Sequence[Sequence[str]], remarks: Sequence[str]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        _GAP.join([*(cell.ljust(size) for cell, size in zip(cells, widths) if size), remark]).rstrip()
        for cells, remark in zip(rows, remarks)
    ]


def _cell_texts(status: Status) -> list[str]:
    return [
        status.name or f"rank {status.rank}",
        "no step yet" if status.step is None else f"step {status.step}",
        "" if status.rate is None else f"{_number_text(status.rate)} steps/s",
        "" if status.loss is None else f"loss {status.loss:.4g}",
        "" if status.memory_bytes is None else _size_text(status.memory_bytes),
        f"{status.seconds:.0f} s" if status.name and status.code is None else "",
        "" if status.left_s is None else f"{status.left_s:.0f} s left",
    ]


def _remark_text(status: Status, ranks: Sequence[Status]) -> str:
    straggler = slowest_rank(ranks)
    excess = (
        f"slowest by {straggler[1] * 1000:.3g} ms a step, {straggler[2]:.0%}"
        if straggler and straggler[0] == status.rank
        else ""
    )
    if status.code is not None:
        return ", ".join(filter(None, [_ending_text(status.code, status.seconds), excess]))
    if is_idle(status):
        if status.collective:
            missing = [other.rank for other in ranks if other.code is None and is_idle(other) and not other.collective]
            awaited = f" for rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}" if missing else ""
            return f"waits{awaited} for {status.idle_s:.0f} s in {status.collective}"
        where = ", " + _FOLDERS.sub("at ", status.place) if status.place else ""
        return f"{'for' if status.step is None else 'no step for'} {status.idle_s:.0f} s{where}"
    return excess


def _ending_text(code: int, seconds: float) -> str:
    if not code:
        return f"finished after {seconds:.0f} s"
    try:
        return f"ended by {signal.Signals(code - 128).name}"
    except ValueError:
        return f"failed with exit code {code}"


def _most_telling_ranks(ranks: list[Status], count: int) -> list[Status]:
    """Return the ranks that have ended, are idle or are the slowest, and the first ones."""
    straggler = slowest_rank(ranks)
    order = sorted(
        ranks, key=lambda status: not (is_idle(status) or status.code or (straggler or [-1])[0] == status.rank)
    )
    return sorted(order[: max(count, 0)], key=lambda status: status.rank)


def _number_text(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _size_text(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
