"""Horovod's collectives composed of HCCL's, which reduce equal shapes and gather equal blocks.

HCCL knows a collective by its place in the graph, which all ranks build alike, and not by a name.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.config.session import session_config
from npu_shim.distributed import groups, hccl_ops
from npu_shim.distributed.world import world


def allreduce(tensors: Sequence[Tensor], reduction: str, group: str) -> list[Tensor]:
    """Reduce each tensor; HCCL fuses those of one step."""
    return [hccl_ops.allreduce(tensor, reduction, group=group) for tensor in tensors]


def allgather(tensor: Tensor, group: str) -> Tensor:
    """Concatenate tensors along axis 0.

    A static first dimension is the same on every rank, as HCCL gathers equal blocks. A dynamic one may differ: the
    tensors are padded to the longest one, and the padding is cut out.
    """
    size = groups.find_group(group).size
    sent = tf.reshape(tensor, [1]) if tensor.shape.rank == 0 else tensor
    if sent.shape.rank is not None and tf_api.v1.dimension_value(sent.shape[0]) is not None:
        return hccl_ops.allgather(sent, size, group)
    rows = hccl_ops.allgather(tf.reshape(tf.shape(sent, out_type=tf.int64)[0], [1]), size, group)
    longest = tf.reduce_max(rows)
    missing = tf.concat([[longest - rows[_own_rank(group)]], tf.shape(sent, out_type=tf.int64)[1:]], 0)
    blocks = hccl_ops.allgather(tf.concat([sent, tf.zeros(missing, sent.dtype)], 0), size, group)
    return tf.concat([blocks[longest * rank : longest * rank + rows[rank]] for rank in range(size)], 0)


def broadcast(tensors: Sequence[Tensor], root: int, group: str) -> list[Tensor]:
    """Copy the tensors of rank ``root`` of the group."""
    return list(hccl_ops.broadcast(list(tensors), root, group=group))


def alltoall(tensor: Tensor, splits: Tensor | None, group: str) -> tuple[Tensor, Tensor]:
    """Send rows to each rank: their numbers first, then their elements."""
    size = groups.find_group(group).size
    shape = tf.shape(tensor, out_type=tf.int64)
    counts = tf.fill([size], shape[0] // size) if splits is None else tf.cast(splits, tf.int64)
    one, place = tf.ones([size], tf.int64), tf.range(size, dtype=tf.int64)
    received = hccl_ops.all_to_all_v(counts, one, place, one, place, group)
    width = tf.reduce_prod(shape[1:])
    out, into = counts * width, received * width
    flat = hccl_ops.all_to_all_v(
        tf.reshape(tensor, [-1]), out, tf.cumsum(out, exclusive=True), into, tf.cumsum(into, exclusive=True), group
    )
    return tf.reshape(flat, tf.concat([[-1], shape[1:]], 0)), received


def reduce_scatter(tensor: Tensor, reduction: str, group: str) -> Tensor:
    """Reduce a tensor and return this rank's block of axis 0; the first d0 % size ranks get one row more."""
    size, rank = groups.find_group(group).size, _own_rank(group)
    rows = None if tensor.shape.rank is None else tf_api.v1.dimension_value(tensor.shape[0])
    if rows is not None and rows % size == 0:
        return hccl_ops.reduce_scatter(tensor, reduction, size, group)
    total = hccl_ops.allreduce(tensor, reduction, group=group)
    length, longer = tf.shape(total)[0] // size, tf.shape(total)[0] % size
    begin = rank * length + tf.minimum(rank, longer)
    return total[begin : begin + length + tf.cast(rank < longer, tf.int32)]


def barrier(group: str) -> None:
    """Return when every rank has called it: when the sum of a number over the ranks is known."""
    if tf.executing_eagerly():
        hccl_ops.allreduce(tf.constant(1.0), "sum", group=group).numpy()
        return
    with tf.Graph().as_default(), tf_api.v1.Session(config=session_config()) as session:
        session.run(hccl_ops.allreduce(tf.constant(1.0), "sum", group=group))


def _own_rank(group: str) -> int:
    return groups.find_group(group).rank_of(world().rank)
