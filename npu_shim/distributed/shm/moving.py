"""Collectives that only move data: what is copied when it is their turn."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim.distributed.collectives.buffer_list import Pieces
from npu_shim.distributed.shm.barrier import Floor

_BYTES = np.dtype(np.uint8)


def allgather(floor: Floor, source: np.ndarray, out: np.ndarray) -> None:
    """Copies every rank's numbers to every rank.

    Args:
        floor: of the group.
        source: flat.
        out: [size, source.size].
    """
    step = floor.chunk // source.dtype.itemsize
    out[floor.place] = source
    for begin in range(0, source.size, step):
        end = min(begin + step, source.size)
        slots = floor.slots(source.dtype, end - begin)
        slots[floor.place][...] = source[begin:end]
        floor.meet()
        for other, slot in enumerate(slots):
            if other != floor.place:
                out[other, begin:end] = slot
        floor.turn()


def broadcast(floor: Floor, data: Pieces, root: int) -> None:
    """Copies the root's bytes to every rank.

    Args:
        floor: of the group.
        data: bytes; the root's are read, the others' written.
        root: the root's number.
    """
    for begin in range(0, data.count, floor.chunk):
        end = min(begin + floor.chunk, data.count)
        slot = floor.slots(_BYTES, end - begin)[root]
        if floor.place == root:
            data.read(begin, end, slot)
        floor.meet()
        if floor.place != root:
            data.write(begin, end, slot)
        floor.turn()


def all_to_all(
    floor: Floor,
    source: np.ndarray,
    out: np.ndarray,
    counts: np.ndarray,
    send_at: Sequence[int],
    receive_at: Sequence[int],
) -> None:
    """Copies a piece of each rank's numbers to each other rank.

    Args:
        floor: of the group.
        source, out: flat.
        counts: [size, size]; counts[i, j] numbers go from rank i to rank j.
        send_at: where in source the piece for each rank begins.
        receive_at: where in out the piece of each rank goes.
    """
    size, place = floor.size, floor.place
    width = floor.chunk // source.dtype.itemsize // size
    count = int(counts[place, place])
    out[receive_at[place] : receive_at[place] + count] = source[send_at[place] : send_at[place] + count]
    for begin in range(0, int(counts.max()) if counts.size else 0, width):
        slots = [slot.reshape(size, width) for slot in floor.slots(source.dtype, size * width)]
        for other in range(size):
            count = min(width, int(counts[place, other]) - begin)
            if other != place and count > 0:
                slots[place][other, :count] = source[send_at[other] + begin : send_at[other] + begin + count]
        floor.meet()
        for other in range(size):
            count = min(width, int(counts[other, place]) - begin)
            if other != place and count > 0:
                out[receive_at[other] + begin : receive_at[other] + begin + count] = slots[other][place, :count]
        floor.turn()
