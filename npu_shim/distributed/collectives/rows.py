"""Collectives along axis 0, of which each rank may have another number of rows."""

from __future__ import annotations

import numpy as np

from npu_shim.distributed.collectives.arrays import Array
from npu_shim.distributed.collectives.base import Collectives
from npu_shim.distributed.collectives.buffer_pool import empty_aligned
from npu_shim.distributed.collectives.reductions import combiner
from npu_shim.distributed.collectives.transport import Transport


class RowCollectives(Collectives):
    """allgather and reduce_scatter."""

    def reduce_scatter(
        self,
        tensor: np.ndarray,
        reduction: str = "sum",
        *,
        key: str,
        type_name: str | None = None,
        uneven: bool = False,
    ) -> np.ndarray:
        """Reduce a tensor over all ranks; each rank gets a block of axis 0, in rank order.

        Args:
            tensor: [d0, ...], the same shape on every rank.
            reduction: as for allreduce.
            key: the key of the collective.
            type_name: as for allreduce.
            uneven: True if d0 need not be a multiple of the number of ranks. The first d0 % size ranks then get one row
                more than the others.
        Returns:
            [d0 // size, ...], or one row more.
        """
        array = Array(tensor, type_name)
        request = self._reduction_request(f"reduce_scatter {reduction}", reduction, [array])
        combine = combiner(reduction, array.type_name)
        if not array.shape or (array.shape[0] % self.size and not uneven):
            raise ValueError(
                f"{key}: a tensor of shape {list(array.shape)} cannot be scattered over {self.size} ranks. Make axis "
                f"0 a multiple of {self.size}."
            )
        rows = row_counts_of_ranks(array.shape[0], self.size)
        counts = rows * array.row_size
        out = empty_aligned(int(counts[self.rank]), array.flat.dtype)

        def exchange_and_reduce(transport: Transport) -> None:
            """Send each rank its block, as those of Transport.reduce_scatter have one size."""
            blocks = empty_aligned(self.size * out.size, out.dtype)
            begins = (np.cumsum(counts) - counts).tolist()
            places = [other * out.size for other in range(self.size)]
            transport.all_to_all(array.flat, blocks, np.tile(counts, (self.size, 1)), begins, places)
            combine(list(blocks.reshape(self.size, out.size)), out)

        if array.shape[0] % self.size:
            self._run(key, request, exchange_and_reduce)
        else:
            self._run(key, request, lambda transport: transport.reduce_scatter(array.flat, out, combine))
        return array.restore(out, (int(rows[self.rank]),) + array.shape[1:])

    def allgather(self, tensor: np.ndarray, *, key: str) -> np.ndarray:
        """Concatenate the tensors of all ranks along axis 0, in rank order.

        Args:
            tensor: [d0, ...]; d0 may differ between ranks. A scalar counts as [1].
            key: the key of the collective.
        Returns:
            [sum of d0, ...].
        """
        return self.allgather_with_counts(tensor, key=key)[0]

    def allgather_with_counts(self, tensor: np.ndarray, *, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Run allgather; return its result and the d0 of each rank, int64 [size]."""
        array = Array(tensor)
        row_size = array.row_size

        def work(transport: Transport) -> tuple[np.ndarray, np.ndarray]:
            gathered = np.empty((self.size, 1), np.int64)
            transport.allgather(np.array([array.rows], np.int64), gathered)
            rows = gathered[:, 0]
            counts = rows * row_size
            out = empty_aligned(int(counts.sum()), array.flat.dtype)
            if (counts == counts[0]).all():
                transport.allgather(array.flat, out.reshape(self.size, array.flat.size))
            else:
                offsets = np.cumsum(counts) - counts
                to_each = np.repeat(counts[:, np.newaxis], self.size, axis=1)
                transport.all_to_all(array.flat, out, to_each, [0] * self.size, offsets.tolist())
            return out, rows

        out, rows = self._run(key, f"allgather of {array.row_text}", work)
        return array.restore(out, (int(rows.sum()),) + array.shape[1:]), rows


def row_counts_of_ranks(rows: int, size: int) -> np.ndarray:
    """Return the number of rows that each rank gets of a tensor, int64 [size]."""
    return rows // size + (np.arange(size) < rows % size).astype(np.int64)
