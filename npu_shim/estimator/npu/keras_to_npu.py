"""The vendor's npu_bridge.estimator.npu.keras_to_npu. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.estimator.keras_to_npu import model_to_npu_estimator
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.estimator.keras_to_npu": "model_to_npu_estimator",
    })

__all__ = [
    "model_to_npu_estimator",
]
