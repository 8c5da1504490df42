"""The vendor's npu_bridge.estimator.npu.npu_loss_scale_optimizer. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.optimizer.loss_scale_optimizer import NPULossScaleOptimizer
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.optimizer.loss_scale_optimizer": "NPULossScaleOptimizer",
    })

__all__ = [
    "NPULossScaleOptimizer",
]
