"""HCCL's collectives with the vendor's names.

On a card they are the vendor's ops. Without cards the processes of one host
communicate through shared memory (collective_ops.py), and on one process each
has its exact single-rank answer. fusion and fusion_id say which collectives the
card carries out together, and change no number.
"""

from __future__ import annotations

from typing import Any, Sequence

from npu_shim import _device, _tf
from npu_shim._lazy_names import not_in_this_release
from npu_shim.distributed import graph_ops as collective_ops, groups
from npu_shim.distributed.groups import is_int
from npu_shim.distributed.world import WORLD, world, world_size

tf = _tf.tf
REDUCTIONS = ("sum", "prod", "max", "min")
# What HCCL's ops are registered for
_REDUCED = (tf.int8, tf.int16, tf.int32, tf.int64, tf.float16, tf.float32, tf.bfloat16)
_GATHERED = _REDUCED + (tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float64)


def allreduce(tensor: Any, reduction: str, fusion: int = 1, fusion_id: int = -1, group: str = WORLD) -> Any:
    """Reduces a tensor over all ranks of a group; every rank gets the result.

    Args:
        tensor: of any shape and number type.
        reduction: 'sum', 'prod', 'max' or 'min'.
        fusion: 0 none, 1 with the gradients' buckets, 2 by fusion_id.
        fusion_id: which bucket with fusion=2.
        group: name of the group.
    Returns:
        A tensor of the same shape and type, the same on every rank, bit by bit. Halves are added up in float32 and
        rounded once. The gradient of a sum is the sum of the gradients over the same group; the others have none.
    Raises:
        ValueError: another reduction, fusion or group.
        TypeError: on several ranks, a type that HCCL does not reduce.
    """
    _check_reduction(reduction)
    _check_fusion(fusion, fusion_id, (0, 1, 2))
    if _device.device().is_npu:
        return _vendor().allreduce(tensor, reduction, fusion, fusion_id, group)
    if _alone(group):
        return tf.identity(tensor)
    return collective_ops.allreduce([_typed(tensor, _REDUCED, "hccl_ops.allreduce")], reduction, group)[0]


def allgather(tensor: Any, rank_size: int, group: str = WORLD, fusion: int = 0, fusion_id: int = -1) -> Any:
    """Joins the tensors of all ranks along axis 0, in rank order: [rank_size * d0, ...].

    Raises:
        ValueError: rank_size is not the group's size.
        TypeError: on several ranks, a type that HCCL does not gather.
    """
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().allgather(tensor, rank_size, group, fusion, fusion_id)
    _check_size(rank_size, group, "hccl_ops.allgather")
    if rank_size == 1:
        return tf.identity(tensor)
    return collective_ops.allgather(_typed(tensor, _GATHERED, "hccl_ops.allgather"), group)


def broadcast(
    tensor: Sequence[Any], root_rank: int, fusion: int = 2, fusion_id: int = 0, group: str = WORLD
) -> list[Any]:
    """Gives every rank the root's tensors.

    Args:
        tensor: a list of tensors or variables; variables are updated in place, as on the card: in a graph when the
            result is run.
        root_rank: the root's number in the group.
        fusion, fusion_id, group: as for allreduce.
    Returns:
        A list of tensors. On one process: the same values, and nothing to update.
    Raises:
        TypeError: tensor is no list, or has texts.
        ValueError: the group has no such root.
    """
    if not isinstance(tensor, (list, tuple)):
        raise TypeError(f"hccl_ops.broadcast: tensor={tensor!r} is not allowed: it must be a list. Write [tensor].")
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().broadcast(tensor, root_rank, fusion, fusion_id, group)
    _check_member(root_rank, "root_rank", group, "hccl_ops.broadcast")
    if _alone(group) or not tensor:
        return [tf.identity(t) for t in tensor]
    values = [_typed(t, None, "hccl_ops.broadcast") for t in tensor]
    return [
        _written_back(given, value) for given, value in zip(tensor, collective_ops.broadcast(values, root_rank, group))
    ]


def reduce(
    tensor: Any, reduction: str, root_rank: int, fusion: int = 0, fusion_id: int = -1, group: str = WORLD
) -> Any:
    """Reduces a tensor to one rank; the others, to which the card gives anything, get their own back.

    Raises:
        ValueError: another reduction, fusion or root.
        TypeError: on several ranks, a type that HCCL does not reduce.
    """
    _check_reduction(reduction)
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().reduce(tensor, reduction, root_rank, fusion, fusion_id, group)
    _check_member(root_rank, "root_rank", group, "hccl_ops.reduce")
    if _alone(group):
        return tf.identity(tensor)
    return collective_ops.reduce(_typed(tensor, _REDUCED, "hccl_ops.reduce"), reduction, root_rank, group)


def reduce_scatter(
    tensor: Any, reduction: str, rank_size: int, group: str = WORLD, fusion: int = 0, fusion_id: int = -1
) -> Any:
    """Reduces a tensor and leaves each rank its slice of axis 0: [d0 / rank_size, ...].

    Raises:
        ValueError: another reduction or fusion, rank_size is not the group's size, or axis 0 does not divide by it.
        TypeError: on several ranks, a type that HCCL does not reduce.
    """
    _check_reduction(reduction)
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().reduce_scatter(tensor, reduction, rank_size, group, fusion, fusion_id)
    _check_size(rank_size, group, "hccl_ops.reduce_scatter")
    if rank_size == 1:
        return tf.identity(tensor)
    return collective_ops.reduce_scatter(_typed(tensor, _REDUCED, "hccl_ops.reduce_scatter"), reduction, group)


def send(tensor: Any, sr_tag: int, dest_rank: int, group: str = WORLD) -> Any:
    """Sends a tensor to one rank, which receives it with the same tag.

    Args:
        tensor: of any shape and number type.
        sr_tag: the same for the receiver.
        dest_rank: the receiver's number in the group.
        group: name of the group.
    Returns:
        An op that is done when the tensor is received; None where it is done eagerly.
    Raises:
        ValueError: the group has no such rank, or it is this one.
        TypeError: a type that HCCL does not send.
    """
    if _device.device().is_npu:
        return _vendor().send(tensor, sr_tag, dest_rank, group)
    _check_other(dest_rank, "dest_rank", group, "hccl_ops.send")
    return collective_ops.send(_typed(tensor, _GATHERED, "hccl_ops.send"), sr_tag, dest_rank, group)


def receive(shape: Sequence[int], data_type: Any, sr_tag: int, src_rank: int, group: str = WORLD) -> Any:
    """Receives the tensor that one rank sends with the same tag.

    Args:
        shape, data_type: of the tensor.
        sr_tag: the same for the sender.
        src_rank: the sender's number in the group.
        group: name of the group.
    Returns:
        The tensor.
    Raises:
        ValueError: the group has no such rank, or it is this one.
        TypeError: a type that HCCL does not send.
    """
    if _device.device().is_npu:
        return _vendor().receive(shape, data_type, sr_tag, src_rank, group)
    _check_other(src_rank, "src_rank", group, "hccl_ops.receive")
    dtype = _check_type(tf.as_dtype(data_type), _GATHERED, "hccl_ops.receive")
    return collective_ops.receive(tf.TensorShape(shape).as_list(), dtype, sr_tag, src_rank, group)


def all_to_all_v(
    send_data: Any,
    send_counts: Any,
    send_displacements: Any,
    recv_counts: Any,
    recv_displacements: Any,
    group: str = WORLD,
) -> Any:
    """Sends a piece of a flat tensor to each rank, and joins what the ranks send.

    Args:
        send_data: [n].
        send_counts, send_displacements: int64 [rank_size]; how many numbers each rank gets, and where they begin.
        recv_counts, recv_displacements: int64 [rank_size]; how many numbers each rank sends, and where they go.
        group: name of the group.
    Returns:
        [sum(recv_counts)]; what no piece covers is 0.
    Raises:
        TypeError: a type that HCCL does not send.
    """
    if _device.device().is_npu:
        return _vendor().all_to_all_v(
            send_data, send_counts, send_displacements, recv_counts, recv_displacements, group
        )
    data = _typed(send_data, _GATHERED, "hccl_ops.all_to_all_v")
    return collective_ops.all_to_all_v([data, send_counts, send_displacements, recv_counts, recv_displacements], group)


def all_to_all_v_c(
    send_data: Any, send_count_matrix: Any, rank: int, fusion: int = 0, fusion_id: int = -1, group: str = WORLD
) -> Any:
    """As all_to_all_v, with the counts of all ranks known to each, and the pieces one after the other.

    Args:
        send_data: [n].
        send_count_matrix: int64 [rank_size, rank_size]; row i has how many numbers rank i sends to each.
        rank: this rank's number in the group.
        fusion, fusion_id, group: as for allgather.
    Returns:
        [sum of this rank's column].
    Raises:
        ValueError: rank is not this rank's number, or another fusion.
        TypeError: a type that HCCL does not send.
    """
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().all_to_all_v_c(send_data, send_count_matrix, rank, fusion, fusion_id, group)
    own = _place(group)
    if rank != own:
        raise ValueError(
            f"hccl_ops.all_to_all_v_c: rank={rank!r} is not allowed: this process is rank {own} of group {group!r}."
        )
    return collective_ops.all_to_all_v_c(
        _typed(send_data, _GATHERED, "hccl_ops.all_to_all_v_c"), send_count_matrix, group
    )


_TWO = "It needs remote memory; run it on cards with the vendor's package."
remote_read = not_in_this_release("hccl_ops.remote_read", "(tensorRemote, data_type)", _TWO)
remote_ref_read = not_in_this_release("hccl_ops.remote_ref_read", "(tensorRemote, cache, offset)", _TWO)
remote_write = not_in_this_release("hccl_ops.remote_write", "(tensorRemote, tensorLocal, data_type)", _TWO)
remote_scatter_write = not_in_this_release("hccl_ops.remote_scatter_write", "(tensorRemote, tensorLocal, offset)", _TWO)
gather_all_to_all_v = not_in_this_release(
    "hccl_ops.gather_all_to_all_v",
    "(addrinfo, addrinfo_count_per_rank, recv_counts, recv_displacements, dtype, addr_length, "
    "group='hccl_world_group')",
    _TWO,
)


def _vendor() -> Any:
    return _device.vendor("npu_bridge.hccl.hccl_ops")


def _check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r} is not allowed: it must be one of {', '.join(REDUCTIONS)}.")


def _check_fusion(fusion: int, fusion_id: int, allowed: Sequence[int]) -> None:
    if fusion not in allowed:
        raise ValueError(f"fusion={fusion!r} is not allowed: it must be one of {', '.join(map(str, allowed))}.")
    if fusion == 2 and fusion_id < 0:
        raise ValueError(f"fusion_id={fusion_id!r} is not allowed with fusion=2: it must be 0 or more.")


def _alone(group: str) -> bool:
    """Whether a group, which has to exist, has one rank."""
    return world_size() == 1 or groups.group(group).size == 1


def _place(group: str) -> int:
    """This process's number in a group."""
    here = world()
    return groups.group(group, here).rank_of(here.rank)


def _size(group: str) -> int:
    return 1 if world_size() == 1 else groups.group(group).size


def _check_size(rank_size: int, group: str, name: str) -> None:
    size = _size(group)
    if rank_size != size:
        raise ValueError(
            f"{name}: rank_size={rank_size!r} is not allowed: group {group!r} has {size} "
            f"rank{'' if size == 1 else 's'}, so it must be {size}."
        )


def _check_member(rank: int, argument: str, group: str, name: str) -> None:
    size = _size(group)
    if not is_int(rank) or not 0 <= rank < size:
        raise ValueError(f"{name}: {argument}={rank!r} is not allowed: group {group!r} has ranks 0 to {size - 1}.")


def _check_other(rank: int, argument: str, group: str, name: str) -> None:
    _check_member(rank, argument, group, name)
    if rank == (0 if world_size() == 1 else _place(group)):
        raise ValueError(f"{name}: {argument}={rank!r} is not allowed: it is this process itself. It needs two ranks.")


def _typed(value: Any, allowed: tuple[Any, ...] | None, name: str) -> Any:
    tensor = tf.convert_to_tensor(value)
    _check_type(tensor.dtype.base_dtype, allowed, name)
    return tensor


def _check_type(dtype: Any, allowed: tuple[Any, ...] | None, name: str) -> Any:
    if dtype == tf.string or (allowed is not None and dtype not in allowed):
        known = "numbers" if allowed is None else ", ".join(t.name for t in allowed)
        raise TypeError(
            f"{name}: a tensor of type {dtype.name} is not allowed, on the card as here: it must be one of "
            f"{known}. Cast it."
        )
    return dtype


def _written_back(given: Any, value: Any) -> Any:
    """The root's value, which a variable has taken when it is read."""
    if isinstance(given, tf.Tensor) or not hasattr(given, "assign"):
        return value
    assigned = given.assign(value)
    if tf.executing_eagerly():
        return value
    with tf.control_dependencies([assigned]):
        return tf.identity(value)
