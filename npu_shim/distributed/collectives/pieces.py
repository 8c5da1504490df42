"""Several arrays as if they were one, without joining them."""
from __future__ import annotations

import bisect
from typing import Iterator, List, Optional, Sequence, Tuple

import numpy as np


class Pieces:
    """Flat arrays of one type, one after the other; positions count numbers from the first."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = [array for array in arrays if array.size]
        self._begins: List[int] = []
        self.count = 0
        for array in self._arrays:
            self._begins.append(self.count)
            self.count += array.size

    def whole(self, begin: int, end: int) -> Optional[np.ndarray]:
        """The numbers from begin to end as a view, None where they are not all of one array."""
        if begin == end:
            return None
        index = bisect.bisect_right(self._begins, begin) - 1
        at = self._begins[index]
        array = self._arrays[index]
        return array[begin - at:end - at] if end - at <= array.size else None

    def read(self, begin: int, end: int, into: np.ndarray) -> None:
        """Copies the numbers from begin to end into an array of that length."""
        for part, place in self._parts(begin, end):
            into[place] = part

    def write(self, begin: int, end: int, source: np.ndarray) -> None:
        """Copies an array to the numbers from begin to end."""
        for part, place in self._parts(begin, end):
            part[...] = source[place]

    def _parts(self, begin: int, end: int) -> Iterator[Tuple[np.ndarray, slice]]:
        if begin == end:
            return
        index = bisect.bisect_right(self._begins, begin) - 1
        at = begin
        while at < end:
            start = self._begins[index]
            part = self._arrays[index][at - start:end - start]
            yield part, slice(at - begin, at - begin + part.size)
            at += part.size
            index += 1
