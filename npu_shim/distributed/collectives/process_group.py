"""The collective operations of a process group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Sequence

import numpy as np

from npu_shim.distributed.collectives.arrays import (
    OneOrList,
    common_dtype,
    common_type_name,
    restore_structure,
    to_arrays,
    types_and_shapes_text,
)
from npu_shim.distributed.collectives.buffer_list import BufferList
from npu_shim.distributed.collectives.buffer_pool import BufferPool, empty_aligned
from npu_shim.distributed.collectives.exchanges import Exchanges
from npu_shim.distributed.collectives.reductions import combiner
from npu_shim.distributed.collectives.rows import RowCollectives
from npu_shim.distributed.collectives.transport import GroupBackend

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class ProcessGroup(RowCollectives, Exchanges):
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
        rank: int,
        backend: GroupBackend,
        pair: Callable[[int, int], ProcessGroup],
        pool: BufferPool,
    ) -> None:
        super().__init__(name, ranks, rank, backend, pool)
        self._pair = pair

    def allreduce(
        self, tensors: OneOrList, reduction: str = "sum", *, key: str, type_name: str | None = None
    ) -> OneOrList:
        """Reduce tensors over all ranks; every rank gets the same bits.

        Args:
            tensors: an array of any shape, or a list of arrays of one type, which form one message.
            reduction: 'sum', 'prod', 'max' or 'min'.
            key: the key of the collective.
            type_name: 'bfloat16' if the arrays have the bits of bfloat16 numbers as uint16.
        Returns:
            An array, or a list of arrays.
        """
        return self._reduce(f"allreduce {reduction}", tensors, reduction, key, type_name)

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
        what = f"reduce {reduction} to rank {self._checked_rank_of_group(root, 'root')}"
        return self._reduce(what, tensors, reduction, key, type_name, is_wanted=self.rank == root)

    def _reduce(
        self,
        collective: str,
        tensors: OneOrList,
        reduction: str,
        key: str,
        type_name: str | None,
        is_wanted: bool = True,
    ) -> OneOrList:
        """Reduce tensors over all ranks; return them unchanged if this rank does not want the result."""
        arrays = to_arrays(tensors, type_name)
        request = self._reduction_request(collective, reduction, arrays)
        flat = [array.flat for array in arrays]
        results = self._pool.allocate([(array.size, array.dtype) for array in flat]) if is_wanted else flat
        out = BufferList(results) if is_wanted else None
        dtype, combine = common_dtype(arrays), combiner(reduction, common_type_name(arrays))
        self._run(key, request, lambda transport: transport.allreduce(BufferList(flat), out, dtype, combine))
        return restore_structure(tensors, [array.restore(result) for array, result in zip(arrays, results)])

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
        is_root = self.rank == self._checked_rank_of_group(root, "root")
        results = [array.flat if is_root else empty_aligned(array.flat.size, array.flat.dtype) for array in arrays]
        data = BufferList([result.view(np.uint8) for result in results])
        request = f"broadcast from rank {root} of {types_and_shapes_text(arrays)}"
        self._run(key, request, lambda transport: transport.broadcast(data, root))
        return restore_structure(tensors, [array.restore(result) for array, result in zip(arrays, results)])

    def send(self, tensor: np.ndarray, *, dest: int, tag: int) -> None:
        """Send a tensor to one rank; return when that rank has received it.

        Args:
            tensor: of any shape and type.
            dest: the rank of the receiver in the group.
            tag: the tag that the receiver passes.
        """
        self._broadcast_in_pair(dest, "dest", self.rank, tag, tensor)

    def receive(self, shape: Sequence[int], dtype: DTypeLike, *, source: int, tag: int) -> np.ndarray:
        """Receive the tensor that a rank sends with the same tag.

        Args:
            shape: of the tensor.
            dtype: of the tensor.
            source: the rank of the sender in the group.
            tag: the tag that the sender passes.
        """
        return self._broadcast_in_pair(source, "source", source, tag, np.empty(tuple(shape), dtype))

    def barrier(self, *, key: str) -> None:
        """Return when every rank has called it."""
        self._run(key, "barrier", lambda transport: transport.barrier())

    def _broadcast_in_pair(self, other: int, name: str, sender: int, tag: int, tensor: np.ndarray) -> np.ndarray:
        if self._checked_rank_of_group(other, name) == self.rank:
            raise ValueError(f"{name}={other} is not allowed: it is this rank. Name another one.")
        low, high = sorted((self.rank, other))
        return self._pair(low, high).broadcast(
            tensor,
            root=int(sender == high),
            key=f"{self.name}: send from rank {sender} to rank {low + high - sender} with sr_tag {tag}",
        )
