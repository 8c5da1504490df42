"""Time that ops cover: unions of intervals, and how much of other intervals they fill. All times are nanoseconds."""

from __future__ import annotations

from typing import Tuple

import numpy as np

Union = Tuple[np.ndarray, np.ndarray]


def union(start: np.ndarray, end: np.ndarray, kept: np.ndarray) -> Union:
    """Return the union of the intervals that are kept; all are sorted by their start."""
    if not kept.all():
        start, end = start[kept], end[kept]
    if not len(start):
        return start, end
    end = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > end[:-1]))
    start = start[first]  # and no longer all of them, of which there may be millions
    return start, end[np.concatenate((first[1:], [True]))]


def filled(covered: Union, edges: np.ndarray) -> np.ndarray:
    """Return how much of the intervals between edges a union covers.

    Args:
        covered: of intervals.
        edges: a row of times that do not fall, for each step.
    Returns:
        For each step a row with the covered time of each interval between its edges.
    """
    start, end = covered
    before = np.zeros(len(start) + 1, np.int64)
    np.subtract(end, start, out=before[1:])  # in place, as there may be millions
    np.cumsum(before[1:], out=before[1:])
    place = np.searchsorted(start, edges, "right")
    beyond = np.maximum(end[place - 1] - edges, 0) * (place > 0) if len(end) else 0
    return np.diff(before[place] - beyond, axis=1)
