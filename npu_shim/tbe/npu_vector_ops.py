"""The vendor's npu_bridge.tbe.npu_vector_ops. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._lazy_names import Missing as _Missing, lazy_names as _lazy_names

if TYPE_CHECKING:
    lamb_apply_optimizer_assign: _Missing
    lamb_apply_weight_assign: _Missing
    PReLU: _Missing
else:
    __getattr__, __dir__ = _lazy_names(__name__, {
        "npu_shim.ops.unimplemented:npu_vector_ops": "lamb_apply_optimizer_assign lamb_apply_weight_assign PReLU",
    })

__all__ = [
    "PReLU",
    "lamb_apply_optimizer_assign",
    "lamb_apply_weight_assign",
]
