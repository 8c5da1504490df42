"""The vendor's npu_bridge.estimator.npu_aicore_ops. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._lazy_names import Missing as _Missing, lazy_names as _lazy_names

if TYPE_CHECKING:
    fast_gelu_v2: _Missing
    centralization: _Missing
    prelu: _Missing
    dropout_v3: _Missing
    dropout_v4: _Missing
    lru_cache_v2: _Missing
    nonzero: _Missing
    nonzerowithvalue: _Missing
    layer_norm: _Missing
    prod_env_mat_a: _Missing
    prodvirialsea: _Missing
    prodforcesea: _Missing
    tabulatefusionsea: _Missing
    tabulatefusion: _Missing
else:
    __getattr__, __dir__ = _lazy_names(__name__, {
        "npu_shim.ops.unimplemented:npu_aicore_ops": (
            "fast_gelu_v2 centralization prelu dropout_v3 dropout_v4 lru_cache_v2 nonzero nonzerowithvalue "
            "layer_norm prod_env_mat_a prodvirialsea prodforcesea tabulatefusionsea tabulatefusion"
        ),
    })

__all__ = [
    "centralization",
    "dropout_v3",
    "dropout_v4",
    "fast_gelu_v2",
    "layer_norm",
    "lru_cache_v2",
    "nonzero",
    "nonzerowithvalue",
    "prelu",
    "prod_env_mat_a",
    "prodforcesea",
    "prodvirialsea",
    "tabulatefusion",
    "tabulatefusionsea",
]
