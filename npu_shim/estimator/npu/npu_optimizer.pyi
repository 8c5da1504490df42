"""The vendor's npu_bridge.estimator.npu.npu_optimizer. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.optimizer.distributed import (
    NPUDistributedOptimizer, allreduce, npu_allreduce, npu_distributed_optimizer_wrapper, reduce,
)
from npu_shim.optimizer.keras import KerasDistributeOptimizer
from npu_shim.optimizer.npu_optimizer import NPUOptimizer

__all__ = [
    "KerasDistributeOptimizer", "NPUDistributedOptimizer", "NPUOptimizer", "allreduce", "npu_allreduce",
    "npu_distributed_optimizer_wrapper", "reduce",
]
