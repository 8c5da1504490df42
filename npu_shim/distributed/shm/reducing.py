"""Collectives that reduce: what moves when it is their turn.

Each number is reduced by one rank, in the order of the ranks, and copied by the
others (or, where there are few, reduced by each in the same order), so that the
result is the same on every rank, bit by bit.
"""

from __future__ import annotations

import numpy as np

from npu_shim.distributed.collectives.buffer_list import Pieces, join, part_from
from npu_shim.distributed.collectives.buffer_pool import empty
from npu_shim.distributed.collectives.transport import Combine
from npu_shim.distributed.shm.barrier import Floor

_FEW_BYTES = 64 << 10  # of all ranks together: reducing it all is cheaper than one more meeting
_LINE_BYTES = 64
_SMALL_PART = 4096  # numbers: to reduce smaller tensors one by one takes longer than to join them before


def allreduce(floor: Floor, source: Pieces, out: Pieces | None, dtype: np.dtype, combine: Combine) -> None:
    """Reduces ``source`` over all ranks.

    Args:
        floor: of the group.
        source: this rank's numbers.
        out: where the result goes, of the same length; None where this rank does not need it.
        dtype: the type in which they are in memory.
        combine: reduces arrays, see reductions.combiner.
    """
    if source.count * dtype.itemsize <= min(floor.chunk, _FEW_BYTES // floor.size):
        _reduce_few(floor, source, out, dtype, combine)
        return
    step = floor.chunk // dtype.itemsize
    parts = _Parts(floor, source, out, dtype, combine, step)
    for begin in range(0, source.count, step):
        parts.reduce(begin, min(step, source.count - begin))


def _reduce_few(floor: Floor, source: Pieces, out: Pieces | None, dtype: np.dtype, combine: Combine) -> None:
    slots = floor.slots(dtype, source.count)
    source.read(0, source.count, slots[floor.place])
    floor.meet()
    if out is not None and source.count:
        whole = out.whole(0, source.count)
        result = empty(source.count, dtype) if whole is None else whole
        combine(slots, result)
        if whole is None:
            out.write(0, source.count, result)
    floor.turn()


class _Parts:
    """Reduces a chunk: each rank a part of it."""

    def __init__(
        self, floor: Floor, source: Pieces, out: Pieces | None, dtype: np.dtype, combine: Combine, step: int
    ) -> None:
        self._floor, self._source, self._out, self._dtype, self._combine = floor, source, out, dtype, combine
        self._scratch = empty(-(-step // floor.size) + _LINE_BYTES, dtype)

    def reduce(self, begin: int, count: int) -> None:
        """Reduces ``count`` numbers from position ``begin``: write the others' parts, reduce one's own, read theirs."""
        floor, source, out = self._floor, self._source, self._out
        slots = floor.slots(self._dtype, count)
        parts = split(count, floor.size, self._dtype.itemsize)
        low, high = parts[floor.place]
        mine = slots[floor.place]
        source.read(begin, begin + low, mine[:low])
        source.read(begin + high, begin + count, mine[high:])
        floor.meet()
        self._reduce_own(begin, low, high, slots)
        floor.meet()
        if out is not None:
            for other, (first, last) in enumerate(parts):
                if other != floor.place and last > first:
                    out.write(begin + first, begin + last, slots[other][first:last])
        floor.turn()

    def _reduce_own(self, begin: int, low: int, high: int, slots: list[np.ndarray]) -> None:
        """Reduces this rank's part of the chunk to where the result goes, and to its slot for the others."""
        place, mine = self._floor.place, slots[self._floor.place]
        owns = self._source.parts(begin + low, begin + high)
        results = [] if self._out is None else self._out.parts(begin + low, begin + high)
        small = len(owns) > 1 and high - low < len(owns) * _SMALL_PART
        scattered = results if small else []
        if small:
            join(owns, mine[low:high])
            owns = [mine[low:high]]
        if small or not results:
            results = [self._scratch[: own.size] for own in owns]
        for own, result in zip(owns, results):
            high = low + own.size
            self._combine([own if other == place else slot[low:high] for other, slot in enumerate(slots)], result)
            mine[low:high] = result
            part_from(result, scattered)
            low = high


def reduce_scatter(floor: Floor, source: np.ndarray, out: np.ndarray, combine: Combine) -> None:
    """Reduces ``size`` blocks over all ranks; rank r gets block r.

    Args:
        floor: of the group.
        source: flat, size * out.size numbers.
        out: flat; this rank's block of the result.
        combine: reduces arrays.
    """
    size, place, width = floor.size, floor.place, floor.chunk // source.dtype.itemsize // floor.size
    blocks = source.reshape(size, out.size)
    for begin in range(0, out.size, width):
        end = min(begin + width, out.size)
        slots = [slot.reshape(size, end - begin) for slot in floor.slots(source.dtype, size * (end - begin))]
        slots[place][:place] = blocks[:place, begin:end]
        slots[place][place + 1 :] = blocks[place + 1 :, begin:end]
        floor.meet()
        combine(
            [blocks[place, begin:end] if other == place else slot[place] for other, slot in enumerate(slots)],
            out[begin:end],
        )
        floor.turn()


def split(count: int, size: int, itemsize: int) -> list[tuple[int, int]]:
    """The parts of a chunk, one for each rank; they begin at cache lines so that no two ranks write the same."""
    line = max(1, _LINE_BYTES // itemsize)
    width = -(-count // (size * line)) * line
    return [(min(count, rank * width), min(count, (rank + 1) * width)) for rank in range(size)]
