"""The collective operations of a process group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Sequence

import numpy as np

from npu_shim.distributed.collectives.arrays import (
    Array,
    OneOrList,
    Tensors,
    allocate_results,
    common_dtype,
    common_type_name,
    describe,
    restore_structure,
    to_arrays,
)
from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.buffer_pool import BufferPool, empty
from npu_shim.distributed.collectives.checks import Counts, check_count_matrix, check_segments
from npu_shim.distributed.collectives.errors import check_counts
from npu_shim.distributed.collectives.op_key import digest_of
from npu_shim.distributed.collectives.reductions import check_reduction, combiner
from npu_shim.distributed.collectives.transport import GroupBackend, Transport

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_MAX_CACHED_DIGESTS = 1024


class ProcessGroup:
    """Ranks that run collectives together.

    Every member calls the same collectives with the same keys, in any order and
    on any thread. The n-th use of a ``key`` on one rank matches the n-th use on
    the others. The request (operation, types, shapes, reduction, root) must be
    the same on every rank. The text after " @ " in a key is a label for messages
    and may differ between ranks.

    Every collective raises TypeError or ValueError for wrong arguments on this
    rank before it contacts another rank; Mismatch, on every rank, if the requests
    differ; PeerLost or Stalled if a rank does not take part.

    Attributes:
        name: name of the group.
        ranks: the world ranks of its members, in the order of the group.
        rank: the rank of this process in the group.
        size: number of members.
    """

    def __init__(
        self,
        name: str,
        ranks: Sequence[int],
        backend: GroupBackend,
        pair: Callable[[int, int], ProcessGroup],
        pool: BufferPool,
    ) -> None:
        self.name, self.ranks, self.rank, self.size = name, tuple(ranks), backend.rank, backend.size
        self._backend, self._pair, self._pool = backend, pair, pool
        self._digests: dict[str, bytes] = {}

    def allreduce(
        self,
        tensors: OneOrList,
        reduction: str = "sum",
        *,
        key: str,
        type_name: str | None = None,
        out: Tensors | None = None,
    ) -> OneOrList:
        """Reduce tensors over all ranks; every rank gets the same bits.

        Args:
            tensors: an array of any shape, or a list of arrays of one type, which form one message.
            reduction: 'sum', 'prod', 'max' or 'min'.
            key: the key of the collective.
            type_name: 'bfloat16' if the arrays have the bits of bfloat16 numbers as uint16.
            out: contiguous arrays for the results, which do not overlap tensors; new arrays when None.
        Returns:
            An array, or a list of arrays.
        """
        arrays = to_arrays(tensors, type_name)
        results = allocate_results(arrays, self._pool, out)
        request = self._reduction(f"allreduce {reduction}", reduction, arrays)
        dtype, combine = common_dtype(arrays), combiner(reduction, common_type_name(arrays))
        self._run(
            key,
            request,
            lambda transport: transport.allreduce(
                BufferList([a.flat for a in arrays]), BufferList(results), dtype, combine
            ),
        )
        return restore_structure(tensors, [array.restore(result) for array, result in zip(arrays, results)])

    def reduce(
        self, tensors: OneOrList, reduction: str = "sum", *, root: int, key: str, type_name: str | None = None
    ) -> OneOrList:
        """Reduce tensors to the root rank; other ranks get their own tensors back.

        Args:
            tensors: as for allreduce.
            reduction: as for allreduce.
            root: the root rank in the group.
            key: the key of the collective.
            type_name: as for allreduce.
        """
        arrays = to_arrays(tensors, type_name)
        request = self._reduction(f"reduce {reduction} to rank {self._member(root, 'root')}", reduction, arrays)
        results = allocate_results(arrays, self._pool) if self.rank == root else [array.flat for array in arrays]
        out = BufferList(results) if self.rank == root else None
        dtype, combine = common_dtype(arrays), combiner(reduction, common_type_name(arrays))
        self._run(
            key,
            request,
            lambda transport: transport.allreduce(BufferList([a.flat for a in arrays]), out, dtype, combine),
        )
        return restore_structure(tensors, [array.restore(result) for array, result in zip(arrays, results)])

    def reduce_scatter(
        self, tensor: np.ndarray, reduction: str = "sum", *, key: str, type_name: str | None = None
    ) -> np.ndarray:
        """Reduce a tensor over all ranks; rank r gets block r of axis 0.

        Args:
            tensor: [size * d0, ...].
            reduction: as for allreduce.
            key: the key of the collective.
            type_name: as for allreduce.
        Returns:
            [d0, ...].
        """
        array = Array(tensor, type_name)
        request = self._reduction(f"reduce_scatter {reduction}", reduction, [array])
        if not array.shape or array.shape[0] % self.size:
            raise ValueError(
                f"{key}: a tensor of shape {list(array.shape)} cannot be scattered over {self.size} ranks. Make axis "
                f"0 a multiple of {self.size}."
            )
        out = empty(array.flat.size // self.size, array.flat.dtype)
        combine = combiner(reduction, array.type_name)
        self._run(key, request, lambda transport: transport.reduce_scatter(array.flat, out, combine))
        return array.restore(out, (array.shape[0] // self.size,) + array.shape[1:])

    def allgather(self, tensor: np.ndarray, *, key: str) -> np.ndarray:
        """Concatenate the tensors of all ranks along axis 0, in rank order.

        Args:
            tensor: [d0, ...], the same shape on every rank; a scalar counts as [1].
            key: the key of the collective.
        Returns:
            [size * d0, ...].
        """
        array = Array(tensor)
        out = empty(self.size * array.flat.size, array.flat.dtype)
        self._run(
            key,
            f"allgather of {array}",
            lambda transport: transport.allgather(array.flat, out.reshape(self.size, array.flat.size)),
        )
        shape = array.shape or (1,)
        return array.restore(out, (self.size * shape[0],) + shape[1:])

    def broadcast(self, tensors: OneOrList, *, root: int, key: str) -> OneOrList:
        """Copy the tensors of the root rank to every rank.

        Args:
            tensors: an array, or a list of arrays of any types, which form one message. On other ranks than the root
                only their types and shapes matter.
            root: the root rank in the group.
            key: the key of the collective.
        Returns:
            An array, or a list of arrays.
        """
        arrays = to_arrays(tensors)
        is_root = self.rank == self._member(root, "root")
        results = [array.flat if is_root else empty(array.flat.size, array.flat.dtype) for array in arrays]
        data = BufferList([result.view(np.uint8) for result in results])
        request = f"broadcast from rank {root} of {describe(arrays)}"
        self._run(key, request, lambda transport: transport.broadcast(data, root))
        return restore_structure(tensors, [array.restore(result) for array, result in zip(arrays, results)])

    def send(self, tensor: np.ndarray, *, dest: int, tag: int) -> None:
        """Send a tensor to one rank; return when that rank has received it.

        Args:
            tensor: of any shape and type.
            dest: the rank of the receiver in the group.
            tag: the tag that the receiver passes.
        """
        self._to_pair(dest, "dest", self.rank, tag, tensor)

    def receive(self, shape: Sequence[int], dtype: DTypeLike, *, source: int, tag: int) -> np.ndarray:
        """Receive the tensor that a rank sends with the same tag.

        Args:
            shape: of the tensor.
            dtype: of the tensor.
            source: the rank of the sender in the group.
            tag: the tag that the sender passes.
        """
        return self._to_pair(source, "source", source, tag, np.empty(tuple(shape), dtype))

    def alltoallv(
        self,
        send_data: np.ndarray,
        send_counts: Counts,
        send_displacements: Counts,
        receive_counts: Counts,
        receive_displacements: Counts,
        *,
        key: str,
    ) -> np.ndarray:
        """Send a segment of a flat tensor to each rank, and receive one from each.

        Args:
            send_data: [n].
            send_counts: [size]; the number of elements for each rank.
            send_displacements: [size]; their offsets in send_data.
            receive_counts: [size]; the number of elements from each rank.
            receive_displacements: [size]; their offsets in the result.
            key: the key of the collective.
        Returns:
            [sum(receive_counts)]; 0 where no segment lies.
        """
        array = Array(send_data)
        counts_out, offsets_out = check_segments(
            key, "send", send_counts, send_displacements, self.size, array.flat.size
        )
        total = int(np.sum(receive_counts))
        counts_in, offsets_in = check_segments(key, "recv", receive_counts, receive_displacements, self.size, total)
        out = empty(total, array.flat.dtype)
        out[...] = 0

        def work(transport: Transport) -> None:
            counts = np.empty((self.size, 2 * self.size), np.int64)
            transport.allgather(np.concatenate([counts_out, counts_in]), counts)
            transport.all_to_all(array.flat, out, check_counts(key, counts), offsets_out.tolist(), offsets_in.tolist())

        self._run(key, f"alltoallv of {array.type_name}", work)
        return array.restore(out, (total,))

    def alltoallvc(
        self, send_data: np.ndarray, send_count_matrix: np.ndarray | Sequence[Sequence[int]], *, key: str
    ) -> np.ndarray:
        """Run alltoallv with the counts of all ranks known to each, and contiguous segments.

        Args:
            send_data: [n].
            send_count_matrix: [size, size]; row i has the number of elements that rank i sends to each rank.
            key: the key of the collective.
        Returns:
            [sum of the column of this rank].
        """
        array = Array(send_data)
        counts = check_count_matrix(key, send_count_matrix, self.size)
        row, column = counts[self.rank], counts[:, self.rank]
        _, offsets_out = check_segments(key, "send", row, np.cumsum(row) - row, self.size, array.flat.size)
        out = empty(int(column.sum()), array.flat.dtype)
        self._run(
            key,
            f"alltoallvc of {array.type_name} with {counts.tolist()}",
            lambda transport: transport.all_to_all(
                array.flat, out, counts, offsets_out.tolist(), (np.cumsum(column) - column).tolist()
            ),
        )
        return array.restore(out, (out.size,))

    def barrier(self, *, key: str) -> None:
        """Return when every rank has called it."""
        self._run(key, "barrier", lambda transport: transport.barrier())

    def _run(self, key: str, request: str, work: Callable[[Transport], None]) -> None:
        digest = self._digests.get(request)
        if digest is None:
            if len(self._digests) >= _MAX_CACHED_DIGESTS:
                self._digests.clear()
            digest = self._digests[request] = digest_of(request)
        self._backend.run(key, request, digest, work)

    def _reduction(self, what: str, reduction: str, arrays: list[Array]) -> str:
        for name in {array.type_name for array in arrays} or {"float32"}:
            check_reduction(reduction, name)
        if len({array.type_name for array in arrays}) > 1:
            raise TypeError(
                f"tensors of one reduction have different types ({describe(arrays)}). Cast them to one type."
            )
        return f"{what} of {describe(arrays)}"

    def _member(self, rank: int, name: str) -> int:
        if not 0 <= rank < self.size:
            raise ValueError(
                f"{name}={rank!r} is not allowed. The ranks of group {self.name!r} are 0 to {self.size - 1}."
            )
        return rank

    def _to_pair(self, other: int, name: str, sender: int, tag: int, tensor: np.ndarray) -> np.ndarray:
        if self._member(other, name) == self.rank:
            raise ValueError(f"{name}={other} is not allowed: it is this rank. Name another one.")
        low, high = sorted((self.rank, other))
        return self._pair(low, high).broadcast(
            tensor,
            root=int(sender == high),
            key=f"{self.name}: send from rank {sender} to rank {low + high - sender} with sr_tag {tag}",
        )
