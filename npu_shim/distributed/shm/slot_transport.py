"""The transport of the collectives of one host: through slots of shared memory.

Each element is reduced by one rank, in rank order, and copied by the others (small
tensors are reduced by every rank in the same order), so the result has the same
bits on every rank.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim.distributed.collectives.buffer_list import BufferList, concatenate_into, split_into
from npu_shim.distributed.collectives.buffer_pool import empty_aligned
from npu_shim.distributed.collectives.reductions import Combiner
from npu_shim.distributed.collectives.transport import Transport
from npu_shim.distributed.shm.barrier import Barrier

_BYTES = np.dtype(np.uint8)
_SMALL_BYTES = 64 << 10  # of all ranks together: reducing them on every rank is cheaper than a second barrier
_CACHE_LINE_BYTES = 64
_MIN_PART = 4096  # elements: smaller tensors are concatenated first, as many small reductions take longer


class SharedMemoryTransport(Transport):
    """Transport through the slots of a group."""

    def __init__(self, barrier: Barrier) -> None:
        self._barrier = barrier

    def allreduce(self, source: BufferList, out: BufferList | None, dtype: np.dtype, combine: Combiner) -> None:
        barrier = self._barrier
        if source.count * dtype.itemsize <= min(barrier.chunk_bytes, _SMALL_BYTES // barrier.size):
            slots = barrier.slots(dtype, source.count)
            source.read(0, source.count, slots[barrier.rank])
            barrier.wait()
            if out is not None and source.count:
                reduce_rows(slots, out, dtype, combine)
            barrier.switch_half()
            return
        step = barrier.chunk_bytes // dtype.itemsize
        reducer = _ChunkReducer(barrier, source, out, dtype, combine, step)
        for begin in range(0, source.count, step):
            reducer.reduce(begin, min(step, source.count - begin))

    def reduce_scatter(self, source: np.ndarray, out: np.ndarray, combine: Combiner) -> None:
        barrier = self._barrier
        size, rank, width = barrier.size, barrier.rank, barrier.chunk_bytes // source.dtype.itemsize // barrier.size
        blocks = source.reshape(size, out.size)
        for begin in range(0, out.size, width):
            end = min(begin + width, out.size)
            slots = [slot.reshape(size, end - begin) for slot in barrier.slots(source.dtype, size * (end - begin))]
            slots[rank][:rank] = blocks[:rank, begin:end]
            slots[rank][rank + 1 :] = blocks[rank + 1 :, begin:end]
            barrier.wait()
            combine(
                [blocks[rank, begin:end] if other == rank else slot[rank] for other, slot in enumerate(slots)],
                out[begin:end],
            )
            barrier.switch_half()

    def allgather(self, source: np.ndarray, out: np.ndarray) -> None:
        barrier = self._barrier
        step = barrier.chunk_bytes // source.dtype.itemsize
        out[barrier.rank] = source
        for begin in range(0, source.size, step):
            end = min(begin + step, source.size)
            slots = barrier.slots(source.dtype, end - begin)
            slots[barrier.rank][...] = source[begin:end]
            barrier.wait()
            for other, slot in enumerate(slots):
                if other != barrier.rank:
                    out[other, begin:end] = slot
            barrier.switch_half()

    def broadcast(self, data: BufferList, root: int) -> None:
        barrier = self._barrier
        for begin in range(0, data.count, barrier.chunk_bytes):
            end = min(begin + barrier.chunk_bytes, data.count)
            slot = barrier.slots(_BYTES, end - begin)[root]
            if barrier.rank == root:
                data.read(begin, end, slot)
            barrier.wait()
            if barrier.rank != root:
                data.write(begin, end, slot)
            barrier.switch_half()

    def all_to_all(
        self, source: np.ndarray, out: np.ndarray, counts: np.ndarray, send_at: Sequence[int], receive_at: Sequence[int]
    ) -> None:
        barrier = self._barrier
        size, rank = barrier.size, barrier.rank
        width = barrier.chunk_bytes // source.dtype.itemsize // size
        count = int(counts[rank, rank])
        out[receive_at[rank] : receive_at[rank] + count] = source[send_at[rank] : send_at[rank] + count]
        for begin in range(0, int(counts.max()) if counts.size else 0, width):
            slots = [slot.reshape(size, width) for slot in barrier.slots(source.dtype, size * width)]
            for other in range(size):
                count = min(width, int(counts[rank, other]) - begin)
                if other != rank and count > 0:
                    slots[rank][other, :count] = source[send_at[other] + begin : send_at[other] + begin + count]
            barrier.wait()
            for other in range(size):
                count = min(width, int(counts[other, rank]) - begin)
                if other != rank and count > 0:
                    out[receive_at[other] + begin : receive_at[other] + begin + count] = slots[other][rank, :count]
            barrier.switch_half()

    def barrier(self) -> None:
        self._barrier.wait()

    def finish(self) -> None:
        """Return at once: the other ranks copied the data before the last barrier."""


class _ChunkReducer:
    """Reduces chunks; each rank reduces a part of each chunk."""

    def __init__(
        self,
        barrier: Barrier,
        source: BufferList,
        out: BufferList | None,
        dtype: np.dtype,
        combine: Combiner,
        step: int,
    ) -> None:
        self._barrier, self._source, self._out, self._dtype, self._combine = barrier, source, out, dtype, combine
        self._scratch = empty_aligned(-(-step // barrier.size) + _CACHE_LINE_BYTES, dtype)

    def reduce(self, begin: int, count: int) -> None:
        """Reduce ``count`` elements from ``begin``: write other ranks' parts, reduce the own part, read theirs."""
        barrier, source, out = self._barrier, self._source, self._out
        slots = barrier.slots(self._dtype, count)
        parts = split_chunk(count, barrier.size, self._dtype.itemsize)
        low, high = parts[barrier.rank]
        mine = slots[barrier.rank]
        source.read(begin, begin + low, mine[:low])
        source.read(begin + high, begin + count, mine[high:])
        barrier.wait()
        self._reduce_own(begin, low, high, slots)
        barrier.wait()
        if out is not None:
            for other, (first, last) in enumerate(parts):
                if other != barrier.rank and last > first:
                    out.write(begin + first, begin + last, slots[other][first:last])
        barrier.switch_half()

    def _reduce_own(self, begin: int, low: int, high: int, slots: list[np.ndarray]) -> None:
        """Reduce the part of this rank into the result, and into its slot for the other ranks."""
        rank, mine = self._barrier.rank, slots[self._barrier.rank]
        owns = self._source.views(begin + low, begin + high)
        results = [] if self._out is None else self._out.views(begin + low, begin + high)
        small = len(owns) > 1 and high - low < len(owns) * _MIN_PART
        scattered = results if small else []
        if small:
            concatenate_into(owns, mine[low:high])
            owns = [mine[low:high]]
        if small or not results:
            results = [self._scratch[: own.size] for own in owns]
        for own, result in zip(owns, results):
            high = low + own.size
            self._combine([own if other == rank else slot[low:high] for other, slot in enumerate(slots)], result)
            mine[low:high] = result
            split_into(result, scattered)
            low = high


def reduce_rows(rows: list[np.ndarray], out: BufferList, dtype: np.dtype, combine: Combiner) -> None:
    """Reduce the rows of all ranks into the whole of ``out``."""
    view = out.view(0, out.count)
    result = empty_aligned(out.count, dtype) if view is None else view
    combine(rows, result)
    if view is None:
        out.write(0, out.count, result)


def split_chunk(count: int, size: int, itemsize: int) -> list[tuple[int, int]]:
    """Return the parts of a chunk, one per rank. They start at cache lines, so no two ranks write the same line."""
    line = max(1, _CACHE_LINE_BYTES // itemsize)
    width = -(-count // (size * line)) * line
    return [(min(count, rank * width), min(count, (rank + 1) * width)) for rank in range(size)]
