"""The collectives of a group of ranks, as they are called."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from npu_shim.distributed.collectives.arrays import (
    Array,
    Tensors,
    arrays_of,
    dtype_of,
    like,
    results_for,
    said,
    type_of,
)
from npu_shim.distributed.collectives.buffer_list import Pieces
from npu_shim.distributed.collectives.buffer_pool import Memory, empty
from npu_shim.distributed.collectives.counts import agreed
from npu_shim.distributed.collectives.op_key import digest_of
from npu_shim.distributed.collectives.reductions import check_reduction, combiner
from npu_shim.distributed.collectives.transport import Exchange, Members

_MOST_REMEMBERED = 1024


class Group:
    """Ranks that communicate. Every member calls the same collectives with the same keys, in any order, on any thread.

    A collective is known by its ``key``: the n-th use of a key on one rank meets
    the n-th use on the others. What is asked (kind, types, shapes, reduction,
    root) has to be the same on all of them. What follows " @ " in a key is for
    people: it is part of messages, and may be another on each rank.

    All collectives raise TypeError or ValueError for arguments that are wrong
    here, before another rank hears of them; Mismatch, on every rank, when the
    ranks ask for different things; PeerLost or Stalled when a rank does not come.

    Attributes:
        name: the group's.
        ranks: the world ranks of its members, in the group's order.
        rank: this process's number in the group.
        size: how many members there are.
    """

    def __init__(
        self, name: str, ranks: Sequence[int], members: Members, pair: Callable[[int, int], Group], memory: Memory
    ) -> None:
        self.name, self.ranks, self.rank, self.size = name, tuple(ranks), members.place, members.size
        self._members, self._pair, self._memory = members, pair, memory
        self._digests: dict[str, bytes] = {}

    def allreduce(
        self,
        tensors: Tensors,
        reduction: str = "sum",
        *,
        key: str,
        type_name: str | None = None,
        out: Tensors | None = None,
    ) -> Any:
        """Reduces tensors over all ranks; every rank gets the same result, bit by bit.

        Args:
            tensors: an array of any shape, or a list of arrays of one type, which travel together.
            reduction: 'sum', 'prod', 'max' or 'min'.
            key: the collective's name.
            type_name: 'bfloat16' when the arrays hold the bits of such numbers as uint16.
            out: contiguous arrays for the result, which do not overlap tensors; new ones when None.
        Returns:
            An array, or a list of them.
        """
        arrays = arrays_of(tensors, type_name)
        results = results_for(arrays, self._memory, out)
        asked = self._reduction(f"allreduce {reduction}", reduction, arrays)
        dtype, combine = dtype_of(arrays), combiner(reduction, type_of(arrays))
        self._run(
            key,
            asked,
            lambda exchange: exchange.allreduce(Pieces([a.flat for a in arrays]), Pieces(results), dtype, combine),
        )
        return like(tensors, [array.shaped(result) for array, result in zip(arrays, results)])

    def reduce(
        self, tensors: Tensors, reduction: str = "sum", *, root: int, key: str, type_name: str | None = None
    ) -> Any:
        """As allreduce, but only the root gets the result; the others get their own tensors back.

        Args:
            tensors, reduction, key, type_name: as for allreduce.
            root: the root's number in the group.
        """
        arrays = arrays_of(tensors, type_name)
        asked = self._reduction(f"reduce {reduction} to rank {self._member(root, 'root')}", reduction, arrays)
        results = results_for(arrays, self._memory) if self.rank == root else [array.flat for array in arrays]
        out = Pieces(results) if self.rank == root else None
        dtype, combine = dtype_of(arrays), combiner(reduction, type_of(arrays))
        self._run(
            key, asked, lambda exchange: exchange.allreduce(Pieces([a.flat for a in arrays]), out, dtype, combine)
        )
        return like(tensors, [array.shaped(result) for array, result in zip(arrays, results)])

    def reduce_scatter(
        self, tensor: np.ndarray, reduction: str = "sum", *, key: str, type_name: str | None = None
    ) -> np.ndarray:
        """Reduces a tensor over all ranks; rank r gets the r-th part of axis 0.

        Args:
            tensor: [size * d0, ...].
            reduction, key, type_name: as for allreduce.
        Returns:
            [d0, ...].
        """
        array = Array(tensor, type_name)
        asked = self._reduction(f"reduce_scatter {reduction}", reduction, [array])
        if not array.shape or array.shape[0] % self.size:
            raise ValueError(
                f"{key}: a tensor of shape {list(array.shape)} cannot be scattered over {self.size} "
                "ranks: axis 0 must divide by their number."
            )
        out = empty(array.flat.size // self.size, array.flat.dtype)
        combine = combiner(reduction, array.type_name)
        self._run(key, asked, lambda exchange: exchange.reduce_scatter(array.flat, out, combine))
        return array.shaped(out, (array.shape[0] // self.size,) + array.shape[1:])

    def allgather(self, tensor: np.ndarray, *, key: str) -> np.ndarray:
        """Joins the tensors of all ranks along axis 0, in their order.

        Args:
            tensor: [d0, ...], the same shape on every rank; a scalar counts as [1].
            key: the collective's name.
        Returns:
            [size * d0, ...].
        """
        array = Array(tensor)
        out = empty(self.size * array.flat.size, array.flat.dtype)
        self._run(
            key,
            f"allgather of {array}",
            lambda exchange: exchange.allgather(array.flat, out.reshape(self.size, array.flat.size)),
        )
        shape = array.shape or (1,)
        return array.shaped(out, (self.size * shape[0],) + shape[1:])

    def broadcast(self, tensors: Tensors, *, root: int, key: str) -> Any:
        """Gives every rank the root's tensors.

        Args:
            tensors: an array, or a list of arrays of any types, which travel together; only types and shapes count on
                ranks other than the root.
            root: the root's number in the group.
            key: the collective's name.
        Returns:
            An array, or a list of them.
        """
        arrays = arrays_of(tensors)
        is_root = self.rank == self._member(root, "root")
        results = [array.flat if is_root else empty(array.flat.size, array.flat.dtype) for array in arrays]
        data = Pieces([result.view(np.uint8) for result in results])
        asked = f"broadcast from rank {root} of {said(arrays)}"
        self._run(key, asked, lambda exchange: exchange.broadcast(data, root))
        return like(tensors, [array.shaped(result) for array, result in zip(arrays, results)])

    def send(self, tensor: np.ndarray, *, dest: int, tag: int) -> None:
        """Sends a tensor to one rank; returns when that rank has received it.

        Args:
            tensor: of any shape and type.
            dest: the receiver's number in the group.
            tag: the same for the receiver.
        """
        self._to_pair(dest, "dest", self.rank, tag, tensor)

    def receive(self, shape: Sequence[int], dtype: Any, *, source: int, tag: int) -> np.ndarray:
        """Receives the tensor that a rank sends with the same tag.

        Args:
            shape, dtype: of the tensor that is sent.
            source: the sender's number in the group.
            tag: the same for the sender.
        """
        return self._to_pair(source, "source", source, tag, np.empty(tuple(shape), dtype))

    def alltoallv(
        self,
        send_data: np.ndarray,
        send_counts: Any,
        send_displacements: Any,
        receive_counts: Any,
        receive_displacements: Any,
        *,
        key: str,
    ) -> np.ndarray:
        """Sends a piece of a flat tensor to each rank, and puts what the others send into one.

        Args:
            send_data: [n].
            send_counts, send_displacements: [size]; how many numbers each rank gets, and where in send_data they begin.
            receive_counts, receive_displacements: [size]; how many numbers each rank sends, and where they go.
            key: the collective's name.
        Returns:
            [sum(receive_counts)]; what no piece covers is 0.
        """
        array = Array(send_data)
        counts_out, at_out = self._places(key, "send", send_counts, send_displacements, array.flat.size)
        total = int(np.sum(receive_counts))
        counts_in, at_in = self._places(key, "recv", receive_counts, receive_displacements, total)
        out = empty(total, array.flat.dtype)
        out[...] = 0

        def work(exchange: Exchange) -> None:
            told = np.empty((self.size, 2 * self.size), np.int64)
            exchange.allgather(np.concatenate([counts_out, counts_in]), told)
            exchange.all_to_all(array.flat, out, agreed(key, told), at_out.tolist(), at_in.tolist())

        self._run(key, f"alltoallv of {array.type_name}", work)
        return array.shaped(out, (total,))

    def alltoallvc(self, send_data: np.ndarray, send_count_matrix: np.ndarray, *, key: str) -> np.ndarray:
        """As alltoallv, with the counts of all ranks known to each, and the pieces one after the other.

        Args:
            send_data: [n].
            send_count_matrix: [size, size]; row i has the numbers that rank i sends to each.
            key: the collective's name.
        Returns:
            [sum of this rank's column].
        """
        array = Array(send_data)
        counts = np.asarray(send_count_matrix, np.int64)
        if counts.shape != (self.size, self.size) or (counts.size and counts.min() < 0):
            raise ValueError(
                f"{key}: send_count_matrix={counts.tolist()} is not allowed: it must have {self.size} "
                f"rows of {self.size} counts, none negative."
            )
        row, column = counts[self.rank], counts[:, self.rank]
        _, at_out = self._places(key, "send", row, np.cumsum(row) - row, array.flat.size)
        out = empty(int(column.sum()), array.flat.dtype)
        self._run(
            key,
            f"alltoallvc of {array.type_name} with {counts.tolist()}",
            lambda exchange: exchange.all_to_all(
                array.flat, out, counts, at_out.tolist(), (np.cumsum(column) - column).tolist()
            ),
        )
        return array.shaped(out, (out.size,))

    def barrier(self, *, key: str) -> None:
        """Returns when every rank has called it."""
        self._run(key, "barrier", lambda exchange: exchange.meet())

    def _run(self, key: str, asked: str, work: Callable[[Exchange], None]) -> None:
        digest = self._digests.get(asked)
        if digest is None:
            if len(self._digests) >= _MOST_REMEMBERED:
                self._digests.clear()
            digest = self._digests[asked] = digest_of(asked)
        self._members.run(key, asked, digest, work)

    def _reduction(self, what: str, reduction: str, arrays: list[Array]) -> str:
        for name in {array.type_name for array in arrays} or {"float32"}:
            check_reduction(reduction, name)
        if len({array.type_name for array in arrays}) > 1:
            raise TypeError(f"tensors that are reduced together must have one type, but these have {said(arrays)}.")
        return f"{what} of {said(arrays)}"

    def _member(self, rank: int, name: str) -> int:
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}={rank!r} is not allowed: ranks of group {self.name!r} are 0 to {self.size - 1}.")
        return rank

    def _to_pair(self, other: int, name: str, sender: int, tag: int, tensor: np.ndarray) -> np.ndarray:
        if self._member(other, name) == self.rank:
            raise ValueError(f"{name}={other} is not allowed: it is this rank itself.")
        low, high = sorted((self.rank, other))
        return self._pair(low, high).broadcast(
            tensor,
            root=int(sender == high),
            key=f"{self.name}: send from rank {sender} to rank {low + high - sender} with sr_tag {tag}",
        )

    def _places(
        self, key: str, side: str, counts: Any, displacements: Any, total: int
    ) -> tuple[np.ndarray, np.ndarray]:
        count, at = np.asarray(counts, np.int64), np.asarray(displacements, np.int64)
        if count.shape != (self.size,) or at.shape != (self.size,):
            raise ValueError(
                f"{key}: {side}_counts and {side}_displacements have shapes {list(count.shape)} and "
                f"{list(at.shape)}, but must have one number for each of {self.size} ranks."
            )
        if count.min() < 0 or at.min() < 0 or (at + count).max() > total:
            raise ValueError(
                f"{key}: {side}_counts={count.tolist()} and {side}_displacements={at.tolist()} are not "
                f"allowed: the pieces must lie within {total} numbers."
            )
        return count, at


def check_members(name: str, members: Sequence[int], rank: int, size: int) -> None:
    """Refuses a group that cannot be.

    Args:
        name: the group's.
        members: their world ranks.
        rank: this process's.
        size: of the world.
    Raises:
        ValueError: they are not ranks of this job, or this one is not among them.
    """
    if len(set(members)) != len(members) or rank not in members or not set(members) <= set(range(size)):
        raise ValueError(
            f"ranks={list(members)} is not allowed for group {name!r} on rank {rank}: it must have this rank "
            f"and others of 0 to {size - 1}, each once."
        )
