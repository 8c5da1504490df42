"""A large reduction among hosts of one rank each, without shared memory.

Every host reduces a block of each chunk. It receives that block of the other ranks,
reduces all in rank order, and sends the result to the others. The arrays of the
caller are sent and received as they are, so that each byte is copied by MPI only.
While the results of a chunk travel, the blocks of the next one do, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.buffer_pool import empty_aligned
from npu_shim.distributed.collectives.reductions import Combiner
from npu_shim.distributed.mpi.links import Links
from npu_shim.distributed.mpi.span import Span
from npu_shim.distributed.shm.slot_transport import split_chunk

if TYPE_CHECKING:
    from npu_shim.distributed.mpi.links import Transfers

_CHUNK_BYTES = 2 << 20


class _Chunk(NamedTuple):
    """A chunk whose blocks are on their way: first and last element of each, and what this host receives."""

    blocks: list[tuple[int, int]]
    inputs: list[np.ndarray]  # of its own block, by host
    transfers: Transfers


class Exchange:
    """One reduction. See the head of this file.

    Args:
        span: the hosts.
        links: to the other ranks.
        source, out, dtype, combine: see Transport.allreduce.
    """

    def __init__(
        self, span: Span, links: Links, source: BufferList, out: BufferList | None, dtype: np.dtype, combine: Combiner
    ) -> None:
        self._span, self._links, self._own = span, links, span.own
        self._source, self._out, self._dtype, self._combine = source, out, dtype, combine
        self._step = min(source.count, _CHUNK_BYTES // dtype.itemsize)
        low, high = self._block_bounds(0)[0]
        self._rooms = [[empty_aligned(high - low, dtype) for _ in span.hosts] for _ in range(2)]
        self._results: list[tuple[int, np.ndarray]] = []  # those that are received, and where they belong
        self._arriving: Transfers = []

    def run(self) -> None:
        """Reduce all chunks."""
        ahead: _Chunk | None = None
        for number, begin in enumerate(range(0, self._source.count, self._step)):
            chunk = self._start_chunk(begin, number % 2)
            if ahead is not None:
                self._reduce_block(ahead, number % 2)
            ahead = chunk
        if ahead is not None:
            self._reduce_block(ahead, 0)
        self._receive_results()

    def _block_bounds(self, begin: int) -> list[tuple[int, int]]:
        count = min(self._step, self._source.count - begin)
        parts = split_chunk(count, len(self._span.hosts), self._dtype.itemsize)
        return [(begin + low, begin + high) for low, high in parts]

    def _start_chunk(self, begin: int, turn: int) -> _Chunk:
        """Send the blocks of a chunk to the hosts that reduce them, and start to receive those of this host."""
        blocks = self._block_bounds(begin)
        self._links.flush(turn)
        for host in self._span.others:
            self._links.send(host, self._source.array(*blocks[host], self._dtype), turn)
        low, high = blocks[self._own]
        inputs = [room[: high - low] for room in self._rooms[turn]]
        transfers = self._links.start_receiving([(host, inputs[host]) for host in self._span.others])
        return _Chunk(blocks, inputs, transfers)

    def _reduce_block(self, chunk: _Chunk, turn: int) -> None:
        """Reduce the block of this host, send it to the others, and start to receive their results."""
        low, high = chunk.blocks[self._own]
        chunk.inputs[self._own] = self._source.array(low, high, self._dtype)
        self._links.wait(chunk.transfers)
        result = self._result_memory(low, high)
        if low < high:
            self._combine(chunk.inputs, result)
        for host in self._span.others:
            self._links.send(host, result, turn)
        self._receive_results()
        self._results = [
            (chunk.blocks[host][0], self._result_memory(*chunk.blocks[host])) for host in self._span.others
        ]
        self._arriving = self._links.start_receiving(
            [(host, target) for host, (_, target) in zip(self._span.others, self._results)]
        )
        self._results.append((low, result))

    def _receive_results(self) -> None:
        self._links.wait(self._arriving)
        if self._out is not None:
            for begin, result in self._results:
                if result.size and self._out.view(begin, begin + result.size) is None:
                    self._out.write(begin, begin + result.size, result)
        self._arriving, self._results = [], []

    def _result_memory(self, low: int, high: int) -> np.ndarray:
        """Return memory for a result: that of the caller if one array has it all."""
        view = None if self._out is None else self._out.view(low, high)
        return empty_aligned(high - low, self._dtype) if view is None else view
