"""The vendor's npu_bridge.estimator.npu.npu_dynamic_rnn. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._lazy_names import Missing as _Missing, lazy_names as _lazy_names

if TYPE_CHECKING:
    DynamicGRUV2: _Missing
    DynamicAUGRU: _Missing
    DynamicRNN: _Missing
else:
    __getattr__, __dir__ = _lazy_names(__name__, {
        "npu_shim.ops.unimplemented:npu_dynamic_rnn": "DynamicGRUV2 DynamicAUGRU DynamicRNN",
    })

__all__ = [
    "DynamicAUGRU",
    "DynamicGRUV2",
    "DynamicRNN",
]
