"""HCCL's collectives with the signatures of the vendor's package for TensorFlow 2. npu_shim.hccl.hccl_ops has more."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow.types import Module, Tensor
from npu_shim.distributed import hccl_ops as _ops
from npu_shim.distributed.hccl_ops import (
    allreduce as allreduce,
    broadcast as broadcast,
    receive as receive,
    reduce as reduce,
    remote_read as remote_read,
    remote_ref_read as remote_ref_read,
    remote_scatter_write as remote_scatter_write,
    remote_write as remote_write,
    send as send,
)
from npu_shim.distributed.world import WORLD


def allgather(tensor: Tensor, rank_size: int, group: str = WORLD) -> Tensor:
    """Concatenate the tensors of all ranks along axis 0. See npu_shim.hccl.hccl_ops.allgather."""
    if host_device.has_npu_device():
        return _generated_ops_module().hcom_all_gather(
            input=tensor, rank_size=rank_size, group=group, fusion=0, fusion_id=-1
        )
    return _ops.allgather(tensor, rank_size, group)


def reduce_scatter(tensor: Tensor, reduction: str, rank_size: int, group: str = WORLD) -> Tensor:
    """Reduce a tensor; each rank gets its block of axis 0. See npu_shim.hccl.hccl_ops.reduce_scatter."""
    if host_device.has_npu_device():
        return _generated_ops_module().hcom_reduce_scatter(
            input=tensor, reduction=reduction, rank_size=rank_size, group=group, fusion=0, fusion_id=-1
        )
    return _ops.reduce_scatter(tensor, reduction, rank_size, group)


def _generated_ops_module() -> Module:
    return host_device.import_vendor_module("npu_device.npu_device").gen_npu_ops


# The vendor's own allgather and reduce_scatter do not give their ops all attributes, and always raise TypeError.
host_device.copy_vendor_names(__name__, own="allgather reduce_scatter")
