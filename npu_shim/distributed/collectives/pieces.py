"""Several arrays as if they were one, without joining them."""
from __future__ import annotations

import bisect
from typing import Iterator, List, Optional, Sequence, Tuple

import numpy as np

ALIGNMENT = 64  # TensorFlow takes an array over as it is when its memory is aligned so


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


def empty(count: int, dtype: np.dtype) -> np.ndarray:
    """An aligned flat array with whatever is in its memory."""
    return empties([(count, dtype)])[0]


def empties(wanted: Sequence[Tuple[int, np.dtype]]) -> List[np.ndarray]:
    """Aligned flat arrays with whatever is in their memory, which is one block: the system gives a large one large pages,
    and hundreds of gradients then cost little more than one tensor of as many bytes.

    Args:
        wanted: count and type of each.
    """
    ends, end = [], 0
    for count, dtype in wanted:
        end += -(-count * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        ends.append(end)
    raw = np.empty(end + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    begins = [first + begin for begin in [0] + ends[:-1]]
    return [raw[begin:begin + count * dtype.itemsize].view(dtype) for begin, (count, dtype) in zip(begins, wanted)]
