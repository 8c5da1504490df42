"""A pool of result buffers: memory is reused when no array refers to it any more.

The kernel clears each page of new memory, which takes longer than the reduction
itself; a training step needs the same sizes again and again.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from typing import Callable, Iterable, Sequence

import numpy as np

ALIGNMENT = 64  # TensorFlow takes over an array without a copy if its memory has this alignment
_MIN_BLOCK_BYTES, _MAX_POOL_BYTES, _MACHINE_SHARE = 1 << 20, 512 << 20, 32
_MAX_OVERSIZE = 1.25


class BufferPool:
    """Memory blocks of one process. It keeps at most 512 MB, and at most 1/32 of the machine's memory.

    Args:
        max_bytes: another limit.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._max_bytes = min(_MAX_POOL_BYTES, physical // _MACHINE_SHARE) if max_bytes is None else max_bytes
        self._lock = threading.Lock()
        self._blocks: OrderedDict[int, np.ndarray] = OrderedDict()  # the least recently used first

    def allocate(self, counts_and_dtypes: Sequence[tuple[int, np.dtype]]) -> list[np.ndarray]:
        """Return aligned flat arrays, uninitialized, in one block of memory.

        The kernel backs a large block with large pages, so hundreds of gradients
        cost little more than one tensor of as many bytes.

        Args:
            counts_and_dtypes: count and type of each array.
        """
        return allocate_aligned(counts_and_dtypes, self._free_or_new_block)

    def _free_or_new_block(self, size: int) -> np.ndarray:
        if size < _MIN_BLOCK_BYTES:
            return np.empty(size, np.uint8)
        with self._lock:
            counts = zip(self._blocks, _reference_counts(self._blocks.values()))
            free = [number for number, count in counts if count == _UNUSED]
            fitting = [number for number in free if size <= self._blocks[number].size <= size * _MAX_OVERSIZE]
            if fitting:
                best = min(fitting, key=lambda number: self._blocks[number].size)
                self._blocks.move_to_end(best)
                return self._blocks[best]
            block = np.empty(size, np.uint8)
            pooled = sum(block.size for block in self._blocks.values())
            for number in free:
                if pooled + size > self._max_bytes:
                    pooled -= self._blocks.pop(number).size
            if pooled + size <= self._max_bytes:
                self._blocks[id(block)] = block
            return block


def _reference_counts(blocks: Iterable[np.ndarray]) -> list[int]:
    return [sys.getrefcount(block) for block in blocks]


(_UNUSED,) = _reference_counts(OrderedDict(block=np.empty(0)).values())  # each array in a block adds a reference


def empty_aligned(count: int, dtype: np.dtype) -> np.ndarray:
    """Return an aligned flat array, uninitialized, in new memory."""
    return allocate_aligned([(count, dtype)], lambda size: np.empty(size, np.uint8))[0]


def allocate_aligned(
    counts_and_dtypes: Sequence[tuple[int, np.dtype]], allocate: Callable[[int], np.ndarray]
) -> list[np.ndarray]:
    """Return aligned flat arrays, one after the other in the bytes that ``allocate`` returns."""
    ends, end = [], 0
    for count, dtype in counts_and_dtypes:
        end += -(-count * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        ends.append(end)
    raw = allocate(end + ALIGNMENT)
    first = -raw.ctypes.data % ALIGNMENT
    views = {dtype: raw[first : first + end].view(dtype) for dtype in {dtype for _, dtype in counts_and_dtypes}}
    begins = [begin // dtype.itemsize for begin, (_, dtype) in zip([0] + ends[:-1], counts_and_dtypes)]
    return [views[dtype][begin : begin + count] for begin, (count, dtype) in zip(begins, counts_and_dtypes)]
