"""Several arrays as if they were one, without joining them."""

from __future__ import annotations

import bisect
from typing import Sequence

import numpy as np


class Pieces:
    """Flat arrays of one type, one after the other; positions count numbers from the first."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = [array for array in arrays if array.size]
        self._begins: list[int] = []
        self.count = 0
        for array in self._arrays:
            self._begins.append(self.count)
            self.count += array.size

    def whole(self, begin: int, end: int) -> np.ndarray | None:
        """The numbers from begin to end as a view, None where they are not all of one array."""
        if begin == end:
            return None
        index = bisect.bisect_right(self._begins, begin) - 1
        at = self._begins[index]
        array = self._arrays[index]
        return array[begin - at : end - at] if end - at <= array.size else None

    def parts(self, begin: int, end: int) -> list[np.ndarray]:
        """The numbers from begin to end as views, one for each array that has some of them."""
        if begin == end:
            return []
        index = bisect.bisect_right(self._begins, begin) - 1
        first = begin - self._begins[index]
        found = [self._arrays[index][first : first + end - begin]]
        at = begin + found[0].size
        while at < end:
            index += 1
            array = self._arrays[index]
            found.append(array if array.size <= end - at else array[: end - at])
            at += array.size
        return found

    def read(self, begin: int, end: int, into: np.ndarray) -> None:
        """Copies the numbers from begin to end into an array of that length."""
        join(self.parts(begin, end), into)

    def write(self, begin: int, end: int, source: np.ndarray) -> None:
        """Copies an array to the numbers from begin to end."""
        part_from(source, self.parts(begin, end))


def join(parts: Sequence[np.ndarray], into: np.ndarray) -> None:
    """Copies flat arrays, one after the other, into one as long as all of them."""
    if len(parts) == 1:
        into[...] = parts[0]
    elif parts:
        np.concatenate(parts, out=into)


def part_from(source: np.ndarray, parts: Sequence[np.ndarray]) -> None:
    """Copies a flat array into several, one after the other."""
    at = 0
    for part in parts:
        part[...] = source[at : at + part.size]
        at += part.size
