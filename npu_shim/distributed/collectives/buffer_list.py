"""A list of arrays that is addressed like one array, without a copy."""

from __future__ import annotations

import bisect
from typing import Sequence

import numpy as np

from npu_shim.distributed.collectives.buffer_pool import empty_aligned


class BufferList:
    """Flat arrays of one type, one after the other. Offsets count elements from the start of the first array."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = [array for array in arrays if array.size]
        self._offsets: list[int] = []
        self.count = 0
        for array in self._arrays:
            self._offsets.append(self.count)
            self.count += array.size

    def view(self, begin: int, end: int) -> np.ndarray | None:
        """Return the elements from begin to end as one view; None if they span several arrays or are none."""
        if begin == end:
            return None
        index = bisect.bisect_right(self._offsets, begin) - 1
        offset = self._offsets[index]
        array = self._arrays[index]
        return array[begin - offset : end - offset] if end - offset <= array.size else None

    def views(self, begin: int, end: int) -> list[np.ndarray]:
        """Return the elements from begin to end as views, one for each array that has some of them."""
        if begin == end:
            return []
        index = bisect.bisect_right(self._offsets, begin) - 1
        first = begin - self._offsets[index]
        views = [self._arrays[index][first : first + end - begin]]
        offset = begin + views[0].size
        while offset < end:
            index += 1
            array = self._arrays[index]
            views.append(array if array.size <= end - offset else array[: end - offset])
            offset += array.size
        return views

    def array(self, begin: int, end: int, dtype: np.dtype) -> np.ndarray:
        """Return the elements from begin to end, of a type, without a copy if one array has them all."""
        array = self.view(begin, end)
        if array is None:
            array = empty_aligned(end - begin, dtype)
            self.read(begin, end, array)
        return array

    def read(self, begin: int, end: int, target: np.ndarray) -> None:
        """Copy the elements from begin to end into an array of that length."""
        concatenate_into(self.views(begin, end), target)

    def write(self, begin: int, end: int, source: np.ndarray) -> None:
        """Copy an array to the elements from begin to end."""
        split_into(source, self.views(begin, end))


def concatenate_into(parts: Sequence[np.ndarray], target: np.ndarray) -> None:
    """Copy flat arrays, one after the other, into an array of their total length."""
    if len(parts) == 1:
        target[...] = parts[0]
    elif parts:
        np.concatenate(parts, out=target)


def split_into(source: np.ndarray, parts: Sequence[np.ndarray]) -> None:
    """Copy a flat array into several arrays, one after the other."""
    offset = 0
    for part in parts:
        part[...] = source[offset : offset + part.size]
        offset += part.size
