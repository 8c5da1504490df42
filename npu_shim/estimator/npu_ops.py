"""The vendor's npu_bridge.estimator.npu_ops. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.dropout import dropout
from npu_shim.ops.not_yet import functions as _functions
from npu_shim.ops.outfeed import outfeed_dequeue_op
from npu_shim.ops.outfeed import outfeed_enqueue_op
from npu_shim.ops.system import NPUInit
from npu_shim.ops.system import NPUShutdown
from npu_shim.ops.system import initialize_system
from npu_shim.ops.system import shutdown_system

__all__ = [
    "NPUInit",
    "NPUShutdown",
    "dropout",
    "initialize_system",
    "outfeed_dequeue_op",
    "outfeed_enqueue_op",
    "shutdown_system",
]
globals().update(_functions("npu_ops"))
__all__ += list(_functions("npu_ops"))
