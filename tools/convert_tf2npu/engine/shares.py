"""Which process converts which files: neighbours, because they import each other, and are read once by one process."""

from __future__ import annotations

import os
from bisect import bisect_left
from itertools import accumulate
from typing import Sequence

_PIECES = 16  # into which a share is cut at least
_LEAST_SIZE = 30_000  # of a piece, unless a share has no more: about ten milliseconds


class Shares:
    """For each process a share of the files in their order, from whose beginning it gets pieces.

    Who has done all of its own takes over the second half of the largest share that is left, so that all end at about
    the same time.

    Args:
        sizes: of the files, to which the work is about proportional.
        processes: their number.
    """

    def __init__(self, sizes: Sequence[int], processes: int) -> None:
        self._ends = _ends(sizes)
        self._left = equal(sizes, processes)

    def next(self, process: int) -> range:
        """The places of the files that a process is to convert next; none if all is given away."""
        if not self._left[process]:
            largest = max(range(len(self._left)), key=lambda number: self._size(self._left[number]))
            left = self._left[largest]
            if len(left) < 2:
                process = largest
            else:
                middle = self._place(self._ends[left.start] + self._size(left) // 2)
                middle = min(max(middle, left.start + 1), left.stop - 1)
                self._left[largest], self._left[process] = range(left.start, middle), range(middle, left.stop)
        left = self._left[process]
        size = max(self._size(left) // _PIECES, _LEAST_SIZE)
        cut = min(max(self._place(self._ends[left.start] + size), left.start + 1), left.stop)
        self._left[process] = range(cut, left.stop)
        return range(left.start, cut)

    def _place(self, size: int) -> int:
        """The first file before which there is so much."""
        return bisect_left(self._ends, size)

    def _size(self, places: range) -> int:
        return self._ends[places.stop] - self._ends[places.start]


def equal(sizes: Sequence[int], count: int) -> list[range]:
    """The places of some files, cut into shares of about the same size; some are empty where there are few files."""
    ends = _ends(sizes)
    cuts = [bisect_left(ends, ends[-1] * number // count) for number in range(count + 1)]
    return [range(begin, end) for begin, end in zip(cuts, cuts[1:])]


def size_of(path: str) -> int:
    """The size of a file."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # said when its turn comes


def _ends(sizes: Sequence[int]) -> list[int]:
    return [0, *accumulate(size + 1 for size in sizes)]
