"""The vendor's npu_bridge.estimator.npu_aicore_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.centralization import centralization
from npu_shim.ops.deep_potential import prod_env_mat_a, prodforcesea, prodvirialsea
from npu_shim.ops.dropout_bytes import dropout_v3, dropout_v4
from npu_shim.ops.fast_gelu import fast_gelu_v2
from npu_shim.ops.gradient_functions import prelu_grad
from npu_shim.ops.layer_norm import layer_norm
from npu_shim.ops.lru_cache_v2 import lru_cache_v2
from npu_shim.ops.nonzero import nonzero, nonzerowithvalue
from npu_shim.ops.prelu import prelu
from npu_shim.ops.tabulate_fusion import tabulatefusion, tabulatefusiongrad, tabulatefusionsea, tabulatefusionseagrad
from npu_shim.ops.unary_ops import npu_aicore_ops

__all__ = [
    "centralization", "dropout_v3", "dropout_v4", "fast_gelu_v2", "layer_norm", "lru_cache_v2", "nonzero",
    "nonzerowithvalue", "npu_aicore_ops", "prelu", "prelu_grad", "prod_env_mat_a", "prodforcesea", "prodvirialsea",
    "tabulatefusion", "tabulatefusiongrad", "tabulatefusionsea", "tabulatefusionseagrad",
]
