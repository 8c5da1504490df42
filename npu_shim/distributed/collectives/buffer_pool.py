"""Memory for results, used again when nobody has them any more.

The system clears each page of fresh memory, which takes longer than reducing
what is put there; a training step needs the same amounts again and again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from typing import Callable, Iterable, Sequence

import numpy as np

ALIGNMENT = 64  # TensorFlow takes an array over as it is when its memory is aligned so
_SMALLEST_BYTES, _MOST_BYTES, _SHARE = 1 << 20, 512 << 20, 32
_FIT = 1.25


class Memory:
    """Blocks of one process: at most half a gigabyte, and a 32nd of what the machine has, stays for the next results.

    Args:
        most_bytes: another limit.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._most_bytes = min(_MOST_BYTES, physical // _SHARE) if most_bytes is None else most_bytes
        self._lock = threading.Lock()
        self._blocks: OrderedDict[int, np.ndarray] = OrderedDict()  # the longest unused first

    def arrays(self, wanted: Sequence[tuple[int, np.dtype]]) -> list[np.ndarray]:
        """Aligned flat arrays with whatever is in their memory, which is one block: the system gives a large one large
        pages, and hundreds of gradients then cost little more than one tensor of as many bytes.

        Args:
            wanted: count and type of each.
        """
        return laid_out(wanted, self._block)

    def _block(self, size: int) -> np.ndarray:
        if size < _SMALLEST_BYTES:
            return np.empty(size, np.uint8)
        with self._lock:
            free = [
                number for number, count in zip(self._blocks, _references(self._blocks.values())) if count == _UNUSED
            ]
            fitting = [number for number in free if size <= self._blocks[number].size <= size * _FIT]
            if fitting:
                best = min(fitting, key=lambda number: self._blocks[number].size)
                self._blocks.move_to_end(best)
                return self._blocks[best]
            made = np.empty(size, np.uint8)
            kept = sum(block.size for block in self._blocks.values())
            for number in free:
                if kept + size > self._most_bytes:
                    kept -= self._blocks.pop(number).size
            if kept + size <= self._most_bytes:
                self._blocks[id(made)] = made
            return made


def _references(blocks: Iterable[np.ndarray]) -> list[int]:
    return [sys.getrefcount(block) for block in blocks]


(_UNUSED,) = _references(OrderedDict(block=np.empty(0)).values())  # each array on a block has a reference to it


def empty(count: int, dtype: np.dtype) -> np.ndarray:
    """An aligned flat array with whatever is in its memory, which is fresh."""
    return laid_out([(count, dtype)], lambda size: np.empty(size, np.uint8))[0]


def laid_out(wanted: Sequence[tuple[int, np.dtype]], block: Callable[[int], np.ndarray]) -> list[np.ndarray]:
    """Aligned flat arrays, one after the other in what ``block`` gives for their bytes."""
    ends, end = [], 0
    for count, dtype in wanted:
        end += -(-count * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        ends.append(end)
    raw = block(end + ALIGNMENT)
    first = -raw.ctypes.data % ALIGNMENT
    numbers = {dtype: raw[first : first + end].view(dtype) for dtype in {dtype for _, dtype in wanted}}
    begins = [begin // dtype.itemsize for begin, (_, dtype) in zip([0] + ends[:-1], wanted)]
    return [numbers[dtype][begin : begin + count] for begin, (count, dtype) in zip(begins, wanted)]
