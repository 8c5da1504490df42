"""Places of the rows of an embedding table that several servers hold.

Mode "mod": row i is row i // n of server i % n. Mode "order": the servers hold blocks of rows, one after the other.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor


def embedding_rank_id(
    addr_table: Tensor, index: Tensor, row_memory: int = 320, mode: str = "mod", name: str | None = None
) -> Tensor:
    """Return rank, address and size of rows.

    Args:
        addr_table: uint64 [servers, 3]: rank, address and bytes of each server's part.
        index: int32, int64 or uint64 [n], the rows.
        row_memory: bytes of a row.
        mode: "mod" or "order".
        name: name of the ops.
    Returns:
        uint64 [n, 3]: rank, address and row_memory of each row.
    Raises:
        ValueError: another mode.
    """
    with tf.name_scope(name or "embedding_rank_id"):
        table = tf.cast(addr_table, tf.int64)
        server, local = _rank_and_local_index("embedding_rank_id", table, tf.cast(index, tf.int64), row_memory, mode)
        entries = tf.gather(table, server)
        parts = [
            entries[:, 0],
            entries[:, 1] + local * row_memory,
            tf.fill(tf.shape(local), tf.constant(row_memory, tf.int64)),
        ]
        return tf.cast(tf.stack(parts, 1), tf.uint64)


def embeddingrankid(addr_tensor: Tensor, index: Tensor, row_memory: int = 320, mode: str = "mod") -> Tensor:
    """Return rank, address and size of rows. Arguments and result as for embedding_rank_id."""
    return embedding_rank_id(addr_tensor, index, row_memory, mode)


def embedding_local_index(
    addr_tensor: Tensor, index: Tensor, row_memory: int = 320, mode: str = "mod"
) -> tuple[Tensor, Tensor, Tensor]:
    """Sort rows by the server that holds them. Arguments and results as for embedding_local_index_operator."""
    return embedding_local_index_operator(addr_tensor, index, row_memory, mode)


def embedding_local_index_operator(
    addr_table: Tensor, index: Tensor, row_memory: int = 320, mode: str = "mod", name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Sort rows by the server that holds them.

    Args:
        addr_table: uint64 [servers, 3]: rank, address and bytes of each server's part.
        index: integers [n], the rows.
        row_memory: bytes of a row.
        mode: "mod" or "order".
        name: name of the ops.
    Returns:
        local_idx, [n], the rows within their servers, server by server; nums, [servers], how many each server has;
        recover_idx, [n]: tf.gather(rows, recover_idx) has the order of index. All of the type of index.
    Raises:
        ValueError: another mode.
    """
    with tf.name_scope(name or "embedding_local_index"):
        index = tf.convert_to_tensor(index)
        table = tf.cast(addr_table, tf.int64)
        server, local = _rank_and_local_index(
            "embedding_local_index", table, tf.cast(index, tf.int64), row_memory, mode
        )
        order = tf.argsort(server, stable=True)
        nums = tf.math.unsorted_segment_sum(tf.ones_like(server), server, tf.shape(table)[0])
        return tuple(tf.cast(tensor, index.dtype) for tensor in (tf.gather(local, order), nums, tf.argsort(order)))


def _rank_and_local_index(
    operator: str, table: Tensor, index: Tensor, row_memory: int, mode: str
) -> tuple[Tensor, Tensor]:
    """Return the server of each row, and its row there."""
    if mode == "mod":
        servers = tf.cast(tf.shape(table)[0], tf.int64)
        return index % servers, index // servers
    if mode != "order":
        raise ValueError(f"{operator}: mode={mode!r} is not allowed. It must be 'mod' or 'order'.")
    ends = tf.cumsum(table[:, 2] // row_memory)
    server = tf.searchsorted(ends, index, side="right", out_type=tf.int64)
    return server, index - tf.gather(tf.concat([[0], ends], 0), server)
