"""The vendor's npu_bridge.estimator.npu.npu_optimizer. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.not_yet import functions as _functions
from npu_shim.optimizer.distributed import NPUDistributedOptimizer
from npu_shim.optimizer.distributed import allreduce
from npu_shim.optimizer.distributed import npu_allreduce
from npu_shim.optimizer.distributed import npu_distributed_optimizer_wrapper
from npu_shim.optimizer.keras import KerasDistributeOptimizer
from npu_shim.optimizer.npu_optimizer import NPUOptimizer

__all__ = [
    "KerasDistributeOptimizer",
    "NPUDistributedOptimizer",
    "NPUOptimizer",
    "allreduce",
    "npu_allreduce",
    "npu_distributed_optimizer_wrapper",
]
globals().update(_functions("npu_optimizer"))
__all__ += list(_functions("npu_optimizer"))
