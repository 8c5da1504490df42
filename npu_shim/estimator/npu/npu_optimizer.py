"""The vendor's npu_bridge.estimator.npu.npu_optimizer. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.optimizer.distributed import (
        NPUDistributedOptimizer, allreduce, npu_allreduce, npu_distributed_optimizer_wrapper, reduce,
    )
    from npu_shim.optimizer.keras import KerasDistributeOptimizer
    from npu_shim.optimizer.npu_optimizer import NPUOptimizer
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = [
    "KerasDistributeOptimizer", "NPUDistributedOptimizer", "NPUOptimizer", "allreduce", "npu_allreduce",
    "npu_distributed_optimizer_wrapper", "reduce",
]
