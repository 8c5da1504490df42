"""HCCL's collectives with the vendor's names. On one process each has its exact single-rank answer.

On a card they are the vendor's ops. With several ranks on the CPU they raise:
training on several ranks is not part of this release, and a single-rank answer
would be wrong.
"""
from __future__ import annotations

from typing import Any, List, Sequence

from npu_shim import _device, _tf
from npu_shim._later import later
from npu_shim.distributed.ranks import WORLD, check_root, require_single_process

tf = _tf.tf
REDUCTIONS = ("sum", "prod", "max", "min")


def allreduce(tensor: Any, reduction: str, fusion: int = 1, fusion_id: int = -1, group: str = WORLD) -> Any:
    """Reduces a tensor over all ranks of a group; every rank gets the result.

    Args:
        tensor: of any shape and number type.
        reduction: 'sum', 'prod', 'max' or 'min'.
        fusion: 0 none, 1 with the gradients' buckets, 2 by fusion_id.
        fusion_id: which bucket with fusion=2.
        group: name of the group.
    Returns:
        A tensor of the same shape and type. On one process: the tensor's value.
    Raises:
        ValueError: another reduction or fusion.
        RuntimeError: several ranks without cards.
    """
    _check_reduction(reduction)
    _check_fusion(fusion, fusion_id, (0, 1, 2))
    if _device.device().is_npu:
        return _vendor().allreduce(tensor, reduction, fusion, fusion_id, group)
    require_single_process("hccl_ops.allreduce")
    return tf.identity(tensor)


def allgather(tensor: Any, rank_size: int, group: str = WORLD, fusion: int = 0, fusion_id: int = -1) -> Any:
    """Joins the tensors of all ranks along axis 0, in rank order: [rank_size * d0, ...].

    Raises:
        ValueError: rank_size is not the group's size.
        RuntimeError: several ranks without cards.
    """
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().allgather(tensor, rank_size, group, fusion, fusion_id)
    _check_size(rank_size, "hccl_ops.allgather")
    return tf.identity(tensor)


def broadcast(tensor: Sequence[Any], root_rank: int, fusion: int = 2, fusion_id: int = 0, group: str = WORLD) -> List[Any]:
    """Gives every rank the root's tensors.

    Args:
        tensor: a list of tensors or variables; on the card variables are updated in place.
        root_rank: the root's number in the group.
        fusion, fusion_id, group: as for allreduce.
    Returns:
        A list of tensors. On one process: the same values, and nothing to update.
    Raises:
        TypeError: tensor is no list.
        ValueError: on one process, a root other than 0.
        RuntimeError: several ranks without cards.
    """
    if not isinstance(tensor, (list, tuple)):
        raise TypeError(f"hccl_ops.broadcast: tensor={tensor!r} is not allowed: it must be a list. Write [tensor].")
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().broadcast(tensor, root_rank, fusion, fusion_id, group)
    require_single_process("hccl_ops.broadcast")
    check_root(root_rank, "hccl_ops.broadcast")
    return [tf.identity(t) for t in tensor]


def reduce(tensor: Any, reduction: str, root_rank: int, fusion: int = 0, fusion_id: int = -1, group: str = WORLD) -> Any:
    """Reduces a tensor to one rank. On one process: the tensor's value.

    Raises:
        ValueError: another reduction, fusion or root.
        RuntimeError: several ranks without cards.
    """
    _check_reduction(reduction)
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().reduce(tensor, reduction, root_rank, fusion, fusion_id, group)
    require_single_process("hccl_ops.reduce")
    check_root(root_rank, "hccl_ops.reduce")
    return tf.identity(tensor)


def reduce_scatter(tensor: Any, reduction: str, rank_size: int, group: str = WORLD, fusion: int = 0,
                   fusion_id: int = -1) -> Any:
    """Reduces a tensor and leaves each rank its slice of axis 0. On one process: the tensor's value.

    Raises:
        ValueError: another reduction or fusion, or rank_size is not the group's size.
        RuntimeError: several ranks without cards.
    """
    _check_reduction(reduction)
    _check_fusion(fusion, fusion_id, (0, 2))
    if _device.device().is_npu:
        return _vendor().reduce_scatter(tensor, reduction, rank_size, group, fusion, fusion_id)
    _check_size(rank_size, "hccl_ops.reduce_scatter")
    return tf.identity(tensor)


_TWO = "It needs two ranks or remote memory; run it on cards with the vendor's package."
send = later("hccl_ops.send", "(tensor, sr_tag, dest_rank, group='hccl_world_group')", _TWO)
receive = later("hccl_ops.receive", "(shape, data_type, sr_tag, src_rank, group='hccl_world_group')", _TWO)
remote_read = later("hccl_ops.remote_read", "(tensorRemote, data_type)", _TWO)
remote_ref_read = later("hccl_ops.remote_ref_read", "(tensorRemote, cache, offset)", _TWO)
remote_write = later("hccl_ops.remote_write", "(tensorRemote, tensorLocal, data_type)", _TWO)
remote_scatter_write = later("hccl_ops.remote_scatter_write", "(tensorRemote, tensorLocal, offset)", _TWO)
gather_all_to_all_v = later(
    "hccl_ops.gather_all_to_all_v",
    "(addrinfo, addrinfo_count_per_rank, recv_counts, recv_displacements, dtype, addr_length, group='hccl_world_group')",
    _TWO)
all_to_all_v = later(
    "hccl_ops.all_to_all_v",
    "(send_data, send_counts, send_displacements, recv_counts, recv_displacements, group='hccl_world_group')", _TWO)
all_to_all_v_c = later(
    "hccl_ops.all_to_all_v_c",
    "(send_data, send_count_matrix, rank, fusion=0, fusion_id=-1, group='hccl_world_group')", _TWO)


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


def _check_size(rank_size: int, name: str) -> None:
    require_single_process(name)
    if rank_size != 1:
        raise ValueError(f"{name}: rank_size={rank_size!r} is not allowed: this job has one rank, so it must be 1.")
