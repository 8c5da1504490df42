"""The vendor's library of operators: which operator is computed where. Those of ops/npu_only.py exist on the NPU only.

``npu.gen_npu_ops``, ``npu_unary_ops`` and ``npu_aicore_ops`` give access to them. The names and arguments are those of
the functions that TensorFlow generates for the vendor's operators.
"""

from __future__ import annotations

import importlib
from typing import Callable

from npu_shim._tensorflow.types import Structure
from npu_shim.ops import npu_only
from npu_shim.options.near import closest

# module below npu_shim.ops -> its operators
_HOMES = {
    "ascend_quant": "ascend_anti_quant ascend_dequant ascend_quant ascend_weight_quant",
    "centralization": "centralization",
    "deep_potential": "prod_force_se_a prod_virial_se_a",
    "deformable_conv2d": "deformable_offsets",
    "dense_image_warp": "dense_image_warp",
    "dropout_masks": (
        "drop_out_do_mask drop_out_do_mask_v3 drop_out_gen_mask drop_out_gen_mask_v3 drop_out_gen_mask_v4"
    ),
    "embedding_adam_w": "embedding_hash_table_apply_adam_w",
    "embedding_files": "embedding_hashmap_export embedding_hashmap_file_size embedding_hashmap_import",
    "embedding_index": "embedding_rank_id",
    "embedding_operators": (
        "cache_add cache_all_index_to_local cache_remote_index_to_local deinit_embedding_hashmap_v2 "
        "embedding_hash_table_evict embedding_hash_table_export embedding_hash_table_import "
        "embedding_hash_table_lookup_or_insert embedding_hashmap_size init_embedding_hash_table "
        "init_embedding_hashmap_v2 lru_cache table_to_resource_v2"
    ),
    "fast_gelu": "fast_gelu fast_gelu_grad",
    "float_status": (
        "npu_alloc_float_status npu_clear_float_status npu_clear_float_status_v2 npu_get_float_status "
        "npu_get_float_status_v2"
    ),
    "gelu": "gelu gelu_grad",
    "gru": "dynamic_augru dynamic_gru_v2",
    "k_means_centroids": "k_means_centroids_v2",
    "lars": "lars lars_v2",
    "layer_norm": "fused_layer_norm fused_layer_norm_grad",
    "library_operators": "decode_image_v3 file_constant get_shape log_time_stamp npu_init npu_shutdown",
    "lru_cache_v2": "lru_cache_v2",
    "lstm": "basic_lstm_cell dynamic_rnn dynamic_rnn_v2",
    "nonzero": "non_zero non_zero_with_value non_zero_with_value_shape non_zero_with_value_shape_v2",
    "optimizer_updates": (
        "adam_apply_one_assign adam_apply_one_with_decay_assign lamb_apply_optimizer_assign lamb_apply_weight_assign"
    ),
    "outfeed": "outfeed_dequeue_op",
    "prelu": "p_relu p_relu_grad",
    "random_choice_with_mask": "random_choice_with_mask stateless_random_choice_with_mask",
    "recurrent_gradients": (
        "basic_lstm_cell_c_state_grad basic_lstm_cell_input_grad basic_lstm_cell_weight_grad dynamic_augru_grad "
        "dynamic_gru_v2_grad dynamic_rnn_grad"
    ),
    "scatter_elements": "scatter_elements scatter_elements_v2",
    "stateless_dropout": "stateless_dropout",
    "tabulate_fusion": "tabulate_fusion tabulate_fusion_grad tabulate_fusion_se_a tabulate_fusion_se_a_grad",
}
# Operators whose function has another name, because the vendor has both.
_OTHER_NAMES = {
    "batch_enqueue": ("batch_queue", "batch_enqueue_operator"),
    "dequeue": ("batch_queue", "dequeue_operator"),
    "embedding_local_index": ("embedding_index", "embedding_local_index_operator"),
    "fast_gelu_v2": ("fast_gelu", "fast_gelu_v2_operator"),
    "deformable_offsets_grad": ("deformable_conv2d", "deformable_offsets_grad_operator"),
    "dense_image_warp_grad": ("dense_image_warp", "dense_image_warp_grad_operator"),
    "k_means_centroids": ("k_means_centroids", "step"),
    "outfeed_enqueue_op": ("outfeed", "outfeed_enqueue_operator"),
    "prod_env_mat_a": ("deep_potential", "prod_env_mat_a_operator"),
    "resize_v2": ("image_resize", "resize_v2_operator"),
    "warp_affine_v2": ("image_resize", "warp_affine_v2_operator"),
}
_HOME_OF = {name: (home, name) for home, names in _HOMES.items() for name in names.split()}
_HOME_OF.update(_OTHER_NAMES)
_ONLY_ON_NPU = [name for name in npu_only.ROWS if name not in npu_only.NOT_OPERATORS]


def names() -> list[str]:
    """Return the names of all operators of the vendor's library."""
    return sorted([*_HOME_OF, *_ONLY_ON_NPU])


def operator(name: str, owner: str) -> Callable[..., Structure]:
    """Return an operator. One that exists on the NPU only raises OnlyOnNPU when it is called.

    Args:
        name: its name, as "fast_gelu".
        owner: how scripts call the library, for messages.
    Raises:
        AttributeError: the library has no such operator.
    """
    if name in _HOME_OF:
        home, own_name = _HOME_OF[name]
        function: Callable[..., Structure] = getattr(importlib.import_module(f"npu_shim.ops.{home}"), own_name)
        return function
    if name not in _ONLY_ON_NPU:
        raise AttributeError(f"{owner} has no operator {name!r}.{closest(name, names())}")
    return npu_only.raising(owner, name)
