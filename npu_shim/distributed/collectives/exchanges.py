"""Collectives in which each rank sends other data to each rank."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim.distributed.collectives.argument_checks import (
    Counts,
    checked_count_matrix,
    checked_counts_and_displacements,
    checked_row_counts_of_ranks,
)
from npu_shim.distributed.collectives.arrays import Array
from npu_shim.distributed.collectives.base import Collectives
from npu_shim.distributed.collectives.buffer_pool import empty_aligned
from npu_shim.distributed.collectives.errors import agreed_count_matrix
from npu_shim.distributed.collectives.transport import Transport


class Exchanges(Collectives):
    """alltoall, alltoallv and alltoallvc."""

    def alltoall(self, tensor: np.ndarray, splits: Counts | None, *, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Send rows of axis 0 to each rank, and receive some from each.

        Args:
            tensor: [d0, ...]; d0 may differ between ranks.
            splits: [size]; the number of rows for each rank, of the first rows for rank 0. None for equal parts.
            key: the key of the collective.
        Returns:
            The rows from all ranks in rank order, and their numbers, int64 [size].
        """
        array = Array(tensor)
        sent, row_size = checked_row_counts_of_ranks(key, splits, array.shape, self.size), array.row_size

        def work(transport: Transport) -> tuple[np.ndarray, np.ndarray]:
            matrix = np.empty((self.size, self.size), np.int64)
            transport.allgather(sent, matrix)
            received = matrix[:, self.rank].copy()
            out = empty_aligned(int(received.sum()) * row_size, array.flat.dtype)
            begins = [((counts.cumsum() - counts) * row_size).tolist() for counts in (sent, received)]
            transport.all_to_all(array.flat, out, matrix * row_size, *begins)
            return out, received

        out, received = self._run(key, f"alltoall of {array.row_text}", work)
        return array.restore(out, (int(received.sum()),) + array.shape[1:]), received

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
        counts_out, offsets_out = checked_counts_and_displacements(
            key, "send", send_counts, send_displacements, self.size, array.flat.size
        )
        total = int(np.sum(receive_counts))
        counts_in, offsets_in = checked_counts_and_displacements(
            key, "recv", receive_counts, receive_displacements, self.size, total
        )
        out = empty_aligned(total, array.flat.dtype)
        out[...] = 0

        def work(transport: Transport) -> None:
            counts = np.empty((self.size, 2 * self.size), np.int64)
            transport.allgather(np.concatenate([counts_out, counts_in]), counts)
            transport.all_to_all(
                array.flat, out, agreed_count_matrix(key, counts), offsets_out.tolist(), offsets_in.tolist()
            )

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
        counts = checked_count_matrix(key, send_count_matrix, self.size)
        row, column = counts[self.rank], counts[:, self.rank]
        _, offsets_out = checked_counts_and_displacements(
            key, "send", row, np.cumsum(row) - row, self.size, array.flat.size
        )
        out = empty_aligned(int(column.sum()), array.flat.dtype)
        self._run(
            key,
            f"alltoallvc of {array.type_name} with {counts.tolist()}",
            lambda transport: transport.all_to_all(
                array.flat, out, counts, offsets_out.tolist(), (np.cumsum(column) - column).tolist()
            ),
        )
        return array.restore(out, (out.size,))
