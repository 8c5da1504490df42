"""The vendor's npu_bridge.hccl.hccl_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.distributed.hccl_ops import (
    all_to_all_v, all_to_all_v_c, allgather, allreduce, broadcast, gather_all_to_all_v, receive, reduce, reduce_scatter,
    remote_read, remote_ref_read, remote_scatter_write, remote_write, send,
)

__all__ = [
    "all_to_all_v", "all_to_all_v_c", "allgather", "allreduce", "broadcast", "gather_all_to_all_v", "receive", "reduce",
    "reduce_scatter", "remote_read", "remote_ref_read", "remote_scatter_write", "remote_write", "send",
]
