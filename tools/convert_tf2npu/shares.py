"""Which process converts which files: neighbours, because they import each other, and are read once by one process."""
from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import List, Sequence

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
        self._ends = [0, *accumulate(size + 1 for size in sizes)]
        cuts = [self._place(self._ends[-1] * number // processes) for number in range(processes + 1)]
        self._left: List[range] = [range(begin, end) for begin, end in zip(cuts, cuts[1:])]

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
