"""HCCL's collectives with the vendor's names.

On the NPU they are the vendor's ops. On the CPU the ranks communicate through a
collective backend (graph_ops.py); with one process each returns its exact
single-rank result. fusion and fusion_id select the collectives that the NPU runs
together; they do not change results.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_graph
from npu_shim._tensorflow.tf_api import tf
from npu_shim.distributed import graph_ops, remote_memory
from npu_shim.distributed.hccl_checks import (
    REDUCED_TYPES,
    REDUCTIONS as REDUCTIONS,
    SENT_TYPES,
    check_fusion,
    check_member,
    check_other_member,
    check_rank_size,
    check_reduction,
    checked_dtype,
    is_single_rank_group,
    own_rank,
    to_checked_tensor,
    warn_if_variable,
)
from npu_shim.distributed.world import WORLD

_prefer_vendor = host_device.prefer_vendor_function("npu_bridge.hccl.hccl_ops")


@_prefer_vendor
def allreduce(tensor: tf.Tensor, reduction: str, fusion: int = 1, fusion_id: int = -1, group: str = WORLD) -> tf.Tensor:
    """Reduce a tensor over all ranks of a group; every rank gets the result.

    Args:
        tensor: of any shape and numeric type.
        reduction: 'sum', 'prod', 'max' or 'min'.
        fusion: 0 for none, 1 for the buckets of the gradients, 2 for fusion_id.
        fusion_id: the bucket, with fusion=2.
        group: name of the group.
    Returns:
        A tensor of the same shape and type, with the same bits on every rank. float16 and bfloat16 are accumulated in
        float32 and rounded once. The gradient of a sum is the sum of the gradients over the same group; other
        reductions have no gradient.
    Raises:
        ValueError: the reduction, fusion or group is not allowed.
        TypeError: on several ranks, HCCL does not reduce the type.
    """
    check_reduction(reduction)
    check_fusion(fusion, fusion_id, (0, 1, 2))
    warn_if_variable(tensor)
    if is_single_rank_group(group):
        return tf.identity(tensor)
    return graph_ops.allreduce([to_checked_tensor(tensor, REDUCED_TYPES, "hccl_ops.allreduce")], reduction, group)[0]


@_prefer_vendor
def allgather(tensor: tf.Tensor, rank_size: int, group: str = WORLD, fusion: int = 0, fusion_id: int = -1) -> tf.Tensor:
    """Concatenate the tensors of all ranks along axis 0, in rank order: [rank_size * d0, ...].

    HCCL needs the same shape on every rank. On the CPU, d0 may differ if it is dynamic, or if the call is eager.

    Raises:
        ValueError: rank_size is not the size of the group.
        TypeError: on several ranks, HCCL does not gather the type.
    """
    check_fusion(fusion, fusion_id, (0, 2))
    check_rank_size(rank_size, group, "hccl_ops.allgather")
    if rank_size == 1:
        return tf.identity(tensor)
    return graph_ops.allgather(to_checked_tensor(tensor, SENT_TYPES, "hccl_ops.allgather"), group)


@_prefer_vendor
def broadcast(
    tensor: Sequence[tf.Tensor], root_rank: int, fusion: int = 2, fusion_id: int = 0, group: str = WORLD
) -> list[tf.Tensor]:
    """Copy the tensors of the root rank to every rank.

    Args:
        tensor: a list of tensors or variables. Variables are updated in place, as on the NPU; in a graph when the
            result runs.
        root_rank: the root rank in the group.
        fusion: as for allreduce.
        fusion_id: as for allreduce.
        group: name of the group.
    Returns:
        A list of tensors. With one process they have the same values.
    Raises:
        TypeError: tensor is not a list, or has strings.
        ValueError: the group has no such rank.
    """
    if not isinstance(tensor, (list, tuple)):
        raise TypeError(f"hccl_ops.broadcast: tensor={tensor!r} is not allowed. Pass a list: [tensor].")
    check_fusion(fusion, fusion_id, (0, 2))
    check_member(root_rank, "root_rank", group, "hccl_ops.broadcast")
    if is_single_rank_group(group) or not tensor:
        return [tf.identity(t) for t in tensor]
    values = [to_checked_tensor(t, None, "hccl_ops.broadcast") for t in tensor]
    pairs = zip(tensor, graph_ops.broadcast(values, root_rank, group))  # variables get the values of the root rank
    return [tf_graph.assign_and_read(given, value) if tf_graph.is_variable(given) else value for given, value in pairs]


@_prefer_vendor
def reduce(
    tensor: tf.Tensor, reduction: str, root_rank: int, fusion: int = 0, fusion_id: int = -1, group: str = WORLD
) -> tf.Tensor:
    """Reduce a tensor to one rank. Other ranks get their own tensor back; on the NPU their result is undefined.

    Raises:
        ValueError: the reduction, fusion or root is not allowed.
        TypeError: on several ranks, HCCL does not reduce the type.
    """
    check_reduction(reduction)
    check_fusion(fusion, fusion_id, (0, 2))
    check_member(root_rank, "root_rank", group, "hccl_ops.reduce")
    if is_single_rank_group(group):
        return tf.identity(tensor)
    return graph_ops.reduce(to_checked_tensor(tensor, REDUCED_TYPES, "hccl_ops.reduce"), reduction, root_rank, group)


@_prefer_vendor
def reduce_scatter(
    tensor: tf.Tensor, reduction: str, rank_size: int, group: str = WORLD, fusion: int = 0, fusion_id: int = -1
) -> tf.Tensor:
    """Reduce a tensor; each rank gets its block of axis 0: [d0 / rank_size, ...].

    Raises:
        ValueError: the reduction or fusion is not allowed, rank_size is not the size of the group, or axis 0 is not a
            multiple of it.
        TypeError: on several ranks, HCCL does not reduce the type.
    """
    check_reduction(reduction)
    check_fusion(fusion, fusion_id, (0, 2))
    check_rank_size(rank_size, group, "hccl_ops.reduce_scatter")
    if rank_size == 1:
        return tf.identity(tensor)
    return graph_ops.reduce_scatter(
        to_checked_tensor(tensor, REDUCED_TYPES, "hccl_ops.reduce_scatter"), reduction, group
    )


@_prefer_vendor
def send(tensor: tf.Tensor, sr_tag: int, dest_rank: int, group: str = WORLD) -> tf.Operation | None:
    """Send a tensor to one rank, which receives it with the same tag.

    Args:
        tensor: of any shape and numeric type.
        sr_tag: the tag that the receiver passes.
        dest_rank: the rank of the receiver in the group.
        group: name of the group.
    Returns:
        An op that ends when the tensor is received; None in eager execution.
    Raises:
        ValueError: the group has no such rank, or it is this rank.
        TypeError: HCCL does not send the type.
    """
    check_other_member(dest_rank, "dest_rank", group, "hccl_ops.send")
    return graph_ops.send(to_checked_tensor(tensor, SENT_TYPES, "hccl_ops.send"), sr_tag, dest_rank, group)


@_prefer_vendor
def receive(shape: Sequence[int], data_type: tf.DType, sr_tag: int, src_rank: int, group: str = WORLD) -> tf.Tensor:
    """Receive the tensor that one rank sends with the same tag.

    Args:
        shape: of the tensor.
        data_type: of the tensor.
        sr_tag: the tag that the sender passes.
        src_rank: the rank of the sender in the group.
        group: name of the group.
    Returns:
        The tensor.
    Raises:
        ValueError: the group has no such rank, or it is this rank.
        TypeError: HCCL does not send the type.
    """
    check_other_member(src_rank, "src_rank", group, "hccl_ops.receive")
    dtype = checked_dtype(tf.as_dtype(data_type), SENT_TYPES, "hccl_ops.receive")
    return graph_ops.receive(tf.TensorShape(shape).as_list(), dtype, sr_tag, src_rank, group)


@_prefer_vendor
def all_to_all_v(
    send_data: tf.Tensor,
    send_counts: tf.Tensor,
    send_displacements: tf.Tensor,
    recv_counts: tf.Tensor,
    recv_displacements: tf.Tensor,
    group: str = WORLD,
) -> tf.Tensor:
    """Send a segment of a flat tensor to each rank, and receive one from each.

    Args:
        send_data: [n].
        send_counts: int64 [rank_size]; the number of elements for each rank.
        send_displacements: int64 [rank_size]; their offsets in send_data.
        recv_counts: int64 [rank_size]; the number of elements from each rank.
        recv_displacements: int64 [rank_size]; their offsets in the result.
        group: name of the group.
    Returns:
        [sum(recv_counts)]; 0 where no segment lies.
    Raises:
        TypeError: HCCL does not send the type.
    """
    data = to_checked_tensor(send_data, SENT_TYPES, "hccl_ops.all_to_all_v")
    return graph_ops.all_to_all_v([data, send_counts, send_displacements, recv_counts, recv_displacements], group)


@_prefer_vendor
def all_to_all_v_c(
    send_data: tf.Tensor,
    send_count_matrix: tf.Tensor,
    rank: int,
    fusion: int = 0,
    fusion_id: int = -1,
    group: str = WORLD,
) -> tf.Tensor:
    """Run all_to_all_v with the counts of all ranks known to each, and contiguous segments.

    Args:
        send_data: [n].
        send_count_matrix: int64 [rank_size, rank_size]; row i has the number of elements that rank i sends to each.
        rank: the rank of this process in the group.
        fusion: as for allgather.
        fusion_id: as for allgather.
        group: name of the group.
    Returns:
        [sum of the column of this rank].
    Raises:
        ValueError: rank is another rank, or the fusion is not allowed.
        TypeError: HCCL does not send the type.
    """
    check_fusion(fusion, fusion_id, (0, 2))
    own = own_rank(group)
    if rank != own:
        raise ValueError(
            f"hccl_ops.all_to_all_v_c: rank={rank!r} is not allowed: this process is rank {own} of group {group!r}. "
            f"Pass {own}."
        )
    return graph_ops.all_to_all_v_c(
        to_checked_tensor(send_data, SENT_TYPES, "hccl_ops.all_to_all_v_c"), send_count_matrix, group
    )


@_prefer_vendor
def gather_all_to_all_v(
    addrinfo: tf.Tensor,
    addrinfo_count_per_rank: tf.Tensor,
    recv_counts: tf.Tensor,
    recv_displacements: tf.Tensor,
    dtype: tf.DType,
    addr_length: int,
    group: str = WORLD,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Gather elements at addresses of this process, and run all_to_all_v with them.

    Args:
        addrinfo: uint64 [n, 2]: address and bytes of each part, those for the first rank first.
        addrinfo_count_per_rank: int64 [rank_size], the number of parts for each rank.
        recv_counts: int64 [rank_size]; the number of elements from each rank.
        recv_displacements: int64 [rank_size]; their offsets in the result.
        dtype: the type of the elements.
        addr_length: has no effect; addrinfo has the bytes.
        group: name of the group.
    Returns:
        [sum(recv_counts)], the elements from all ranks, 0 where none lies; and the gathered elements of this process.
    Raises:
        TypeError: HCCL does not send the type.
        InvalidArgumentError: when it runs, if an address is not in a memory of this process.
    """
    kind = checked_dtype(tf.as_dtype(dtype), SENT_TYPES, "hccl_ops.gather_all_to_all_v")
    elements, counts = remote_memory.gather_at_addresses_and_count(addrinfo, addrinfo_count_per_rank, kind)
    begins = tf.cumsum(counts, exclusive=True)
    return graph_ops.all_to_all_v([elements, counts, begins, recv_counts, recv_displacements], group), elements


remote_read = _prefer_vendor(remote_memory.remote_read)
remote_ref_read = _prefer_vendor(remote_memory.remote_ref_read)
remote_write = _prefer_vendor(remote_memory.remote_write)
remote_scatter_write = _prefer_vendor(remote_memory.remote_scatter_write)
