"""Base class of the collective operations of a process group."""

from __future__ import annotations

from typing import Callable, Sequence, TypeVar

from npu_shim.distributed.collectives.arrays import Array, types_and_shapes_text
from npu_shim.distributed.collectives.buffer_pool import BufferPool
from npu_shim.distributed.collectives.op_key import request_digest
from npu_shim.distributed.collectives.reductions import check_reduction
from npu_shim.distributed.collectives.transport import GroupBackend, Transport

T = TypeVar("T")


class Collectives:
    """The ranks of a group, and the way in which one of its collectives runs."""

    def __init__(self, name: str, ranks: Sequence[int], rank: int, backend: GroupBackend, pool: BufferPool) -> None:
        self.name, self.ranks, self.rank, self.size = name, tuple(ranks), rank, len(ranks)
        self._backend, self._pool = backend, pool

    def _run(self, key: str, request: str, work: Callable[[Transport], T]) -> T:
        return self._backend.run(key, request, request_digest(request), work)

    def _reduction_request(self, collective: str, reduction: str, arrays: list[Array]) -> str:
        for name in {array.type_name for array in arrays} or {"float32"}:
            check_reduction(reduction, name)
        if len({array.type_name for array in arrays}) > 1:
            raise TypeError(
                f"tensors of one reduction have different types ({types_and_shapes_text(arrays)}). "
                "Cast them to one type."
            )
        return f"{collective} of {types_and_shapes_text(arrays)}"

    def _checked_rank_of_group(self, rank: int, name: str) -> int:
        if not 0 <= rank < self.size:
            raise ValueError(
                f"{name}={rank!r} is not allowed. The ranks of group {self.name!r} are 0 to {self.size - 1}."
            )
        return rank
