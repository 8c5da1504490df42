"""The vendor's npu_bridge.estimator.npu.npu_optimizer. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.optimizer.distributed import NPUDistributedOptimizer
    from npu_shim.optimizer.distributed import allreduce
    from npu_shim.optimizer.distributed import npu_allreduce
    from npu_shim.optimizer.distributed import npu_distributed_optimizer_wrapper
    from npu_shim.optimizer.keras import KerasDistributeOptimizer
    from npu_shim.optimizer.npu_optimizer import NPUOptimizer

    reduce: Callable[..., Any]
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.optimizer.distributed": "NPUDistributedOptimizer allreduce npu_allreduce npu_distributed_optimizer_wrapper",
        "npu_shim.optimizer.keras": "KerasDistributeOptimizer",
        "npu_shim.optimizer.npu_optimizer": "NPUOptimizer",
        "not_yet:npu_optimizer": "reduce",
    })

__all__ = [
    "KerasDistributeOptimizer",
    "NPUDistributedOptimizer",
    "NPUOptimizer",
    "allreduce",
    "npu_allreduce",
    "npu_distributed_optimizer_wrapper",
    "reduce",
]
