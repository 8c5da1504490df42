"""The transport of the collectives of several hosts: shared memory within a host, MPI between the leaders.

A large reduction passes along the hosts: each adds its ranks to the partial result
of the host before, in rank order, and the last sends the result back. Each
direction of a link carries a tensor once, as in a ring, and the result has the bits
that one host computes if the ranks are numbered host by host. Chunks follow one
another, so all hosts work at the same time. For a small reduction, the hosts
exchange the tensors of all ranks, and every rank reduces them. Hosts of one rank each
share no memory; their large reductions are in exchange.py.

A slot has two areas: the first is for the tensor of its rank, and the second, in
the slot of the leader, for partial results and other data of other hosts.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.buffer_pool import empty_aligned
from npu_shim.distributed.collectives.reductions import Combiner
from npu_shim.distributed.collectives.transport import Transport
from npu_shim.distributed.mpi.exchange import Exchange
from npu_shim.distributed.mpi.links import Links
from npu_shim.distributed.mpi.span import Span
from npu_shim.distributed.shm.barrier import Barrier
from npu_shim.distributed.shm.slot_transport import reduce_rows, split_chunk

_BYTES = np.dtype(np.uint8)
_SMALL_BYTES = 512 << 10  # of all ranks together: a second message would take longer than its part of the data


class HostTransport(Transport):
    """Transport through the slots of a group on this host and the links of its leader.

    Args:
        span: the hosts of the group.
        rank: the rank of this process in the group.
        barrier: of its members on this host.
        links: to the other leaders; None on a rank that is no leader.
    """

    def __init__(self, span: Span, rank: int, barrier: Barrier, links: Links | None) -> None:
        self._span, self._barrier, self._links = span, barrier, links
        self._size, self._place = len(span.positions), span.positions[rank]
        self._area_bytes = barrier.chunk_bytes // 2

    # ---- the collectives

    def allreduce(self, source: BufferList, out: BufferList | None, dtype: np.dtype, combine: Combiner) -> None:
        if source.count * dtype.itemsize * self._size <= min(self._area_bytes, _SMALL_BYTES):
            if source.count:
                rows = self._gather(source.array(0, source.count, dtype))
                if out is not None:
                    reduce_rows([rows[position] for position in self._span.positions], out, dtype, combine)
                self._barrier.switch_half()
            return
        if self._links is not None and self._size == len(self._span.hosts):
            Exchange(self._span, self._links, source, out, dtype, combine).run()
            return
        _Chain(self._span, self._barrier, self._links, self._area_bytes, source, out, dtype, combine).run()

    def reduce_scatter(self, source: np.ndarray, out: np.ndarray, combine: Combiner) -> None:
        """Reduce all blocks, as the partial results of each pass through every host."""
        reduced = empty_aligned(source.size, source.dtype)
        self.allreduce(BufferList([source]), BufferList([reduced]), source.dtype, combine)
        rank = self._span.positions.index(self._place)
        out[...] = reduced[rank * out.size : (rank + 1) * out.size]

    def allgather(self, source: np.ndarray, out: np.ndarray) -> None:
        step = max(1, self._area_bytes // source.dtype.itemsize // self._size)
        for begin in range(0, source.size, step):
            end = min(begin + step, source.size)
            rows = self._gather(source[begin:end])
            for rank, position in enumerate(self._span.positions):
                out[rank, begin:end] = rows[position]
            self._barrier.switch_half()

    def broadcast(self, data: BufferList, root: int) -> None:
        barrier, links, span = self._barrier, self._links, self._span
        position = span.positions[root]
        source = max(host for host in range(len(span.hosts)) if span.begins[host] <= position)
        after, before = span.others[0], span.others[-1]
        slot_of_root = position - span.begins[source] if source == span.own else 0
        for begin in range(0, data.count, self._area_bytes):
            end = min(begin + self._area_bytes, data.count)
            slot = barrier.slots(_BYTES, end - begin)[slot_of_root]
            if links is not None:
                links.flush(barrier.half)
                if source != span.own:
                    links.receive([(before, slot)])
            if self._place == position:
                data.read(begin, end, slot)
            if links is not None and slot_of_root:  # the root writes its slot again after this barrier
                links.flush(barrier.half ^ 1)
            barrier.wait()
            if links is not None and after != source:
                links.send(after, slot, barrier.half)
            if self._place != position:
                data.write(begin, end, slot)
            self._barrier.switch_half()

    def all_to_all(
        self, source: np.ndarray, out: np.ndarray, counts: np.ndarray, send_at: Sequence[int], receive_at: Sequence[int]
    ) -> None:
        """Exchange segments in lanes: slots have a lane for each receiver, and the second area one for each pair."""
        barrier, span, size = self._barrier, self._span, self._size
        ranks = [span.positions.index(position) for position in range(size)]
        me, here = ranks[self._place], span.positions_of_host(span.own)
        own = self._place - here.start
        widest = max(1, self._area_bytes // source.dtype.itemsize // (size * max(map(len, span.hosts))))
        for begin in range(0, int(counts.max()) if counts.size else 0, widest):
            width = min(widest, int(counts.max()) - begin)
            lanes = [slot.reshape(size, width) for slot in barrier.slots(source.dtype, size * width)]
            arrived = self._second_area(source.dtype, size * barrier.size * width).reshape(size, barrier.size, width)
            for position, other in enumerate(ranks):
                count = min(width, int(counts[me, other]) - begin)
                if count > 0:
                    at = send_at[other] + begin
                    lanes[own][position, :count] = source[at : at + count]
            barrier.wait()
            if self._links is not None:
                for host in span.others:
                    for slot in lanes:
                        self._links.send(host, slot[span.positions_of_host(host)].reshape(-1), barrier.half)
                self._links.receive(
                    [
                        (host, arrived[position].reshape(-1))
                        for host in span.others
                        for position in range(span.begins[host], span.begins[host + 1])
                    ]
                )
                self._links.flush(barrier.half)
            barrier.wait()
            for position, other in enumerate(ranks):
                count = min(width, int(counts[other, me]) - begin)
                if count > 0:
                    is_here = here.start <= position < here.stop
                    lane = lanes[position - here.start][self._place] if is_here else arrived[position, own]
                    out[receive_at[other] + begin : receive_at[other] + begin + count] = lane[:count]
            self._barrier.switch_half()

    def barrier(self) -> None:
        """Return at once: the hosts have agreed on it, so every rank has called it."""
        self._barrier.wait()

    def finish(self) -> None:
        if self._links is not None:
            self._links.flush(0)
            self._links.flush(1)

    # ---- their parts

    def _gather(self, array: np.ndarray) -> np.ndarray:
        """Return the arrays of all ranks by position, in shared memory."""
        barrier, links, span = self._barrier, self._links, self._span
        rows = barrier.slots(array.dtype, self._size * array.size)[0].reshape(self._size, array.size)
        rows[self._place] = array
        barrier.wait()
        if links is not None:
            for host in span.others:
                links.send(host, rows[span.positions_of_host(span.own)].reshape(-1), barrier.half)
            links.receive([(host, rows[span.positions_of_host(host)].reshape(-1)) for host in span.others])
            links.flush(barrier.half)
        barrier.wait()
        return rows

    def _second_area(self, dtype: np.dtype, count: int) -> np.ndarray:
        whole = self._barrier.slots(_BYTES, self._barrier.chunk_bytes)[0]
        return whole[self._area_bytes : self._area_bytes + count * dtype.itemsize].view(dtype)


class _Chunk:
    """A chunk whose result is on its way: where it belongs, and the slot of the leader into which it comes."""

    def __init__(self, begin: int, end: int, slot: np.ndarray, half: int) -> None:
        self.begin, self.end, self.slot, self.half = begin, end, slot, half


class _Chain:
    """A large reduction. See the head of this file."""

    def __init__(
        self,
        span: Span,
        barrier: Barrier,
        links: Links | None,
        area_bytes: int,
        source: BufferList,
        out: BufferList | None,
        dtype: np.dtype,
        combine: Combiner,
    ) -> None:
        self._span, self._barrier, self._links, self._area_bytes = span, barrier, links, area_bytes
        self._source, self._out, self._dtype, self._combine = source, out, dtype, combine
        self._partial_dtype = combine.partial_dtype(dtype)
        self._is_first, self._is_last = span.own == 0, span.own == len(span.hosts) - 1

    def run(self) -> None:
        """Reduce all chunks; the result of each comes back while the next one is reduced."""
        step = self._area_bytes // self._partial_dtype.itemsize
        waiting: _Chunk | None = None
        for begin in range(0, self._source.count, step):
            chunk = self._reduce_and_send(begin, min(begin + step, self._source.count))
            if self._is_last:
                self._write_result(chunk)
            elif waiting is not None:
                self._receive_and_forward_result(waiting)
            waiting = chunk
            self._barrier.switch_half()
        if waiting is not None and not self._is_last:
            self._receive_and_forward_result(waiting)

    def _reduce_and_send(self, begin: int, end: int) -> _Chunk:
        """Add the ranks of this host to a partial result, and send it on."""
        barrier, links, count = self._barrier, self._links, end - begin
        slots = barrier.slots(self._dtype, count)
        whole = barrier.slots(_BYTES, barrier.chunk_bytes)[0]
        partial = whole[self._area_bytes : self._area_bytes + count * self._partial_dtype.itemsize]
        partial = partial.view(self._partial_dtype)
        if links is not None:
            links.flush(barrier.half)
        self._source.read(begin, end, slots[barrier.rank])
        if links is not None and not self._is_first:
            links.receive([(self._span.own - 1, partial)])
        barrier.wait()
        low, high = split_chunk(count, barrier.size, self._dtype.itemsize)[barrier.rank]
        if low < high:
            inputs = [slot[low:high] for slot in slots]
            before = None if self._is_first else partial[low:high]
            if self._is_last:
                self._combine.finish(before, inputs, slots[0][low:high])
            else:
                self._combine.accumulate(before, inputs, partial[low:high])
        barrier.wait()
        if links is not None and self._is_last:
            links.send(self._span.own - 1, slots[0], barrier.half)
        elif links is not None:
            links.send(self._span.own + 1, partial, barrier.half)
        return _Chunk(begin, end, slots[0], barrier.half)

    def _receive_and_forward_result(self, chunk: _Chunk) -> None:
        """Receive the result of a chunk, and send it on to the host before."""
        if self._links is not None:
            self._links.receive([(self._span.own + 1, chunk.slot)])
        self._barrier.wait()
        if self._links is not None and not self._is_first:
            self._links.send(self._span.own - 1, chunk.slot, chunk.half)
        self._write_result(chunk)
        self._barrier.wait()  # the next chunk but one is written into this slot

    def _write_result(self, chunk: _Chunk) -> None:
        if self._out is not None:
            self._out.write(chunk.begin, chunk.end, chunk.slot)
