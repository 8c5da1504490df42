"""The vendor's library of operators: which operator is computed where, and which are not in this release.

``npu.gen_npu_ops``, ``npu_unary_ops`` and ``npu_aicore_ops`` give access to them. The names and arguments are those of
the functions that TensorFlow generates for the vendor's operators.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable

from npu_shim._lazy_names import NotInThisRelease
from npu_shim.options.near import closest

# module below npu_shim.ops -> its operators
_HOMES = {
    "centralization": "centralization",
    "deformable_conv2d": "deformable_offsets",
    "dense_image_warp": "dense_image_warp",
    "dropout_masks": (
        "drop_out_do_mask drop_out_do_mask_v3 drop_out_gen_mask drop_out_gen_mask_v3 drop_out_gen_mask_v4"
    ),
    "embedding_index": "embedding_local_index embedding_rank_id",
    "fast_gelu": "fast_gelu fast_gelu_grad fast_gelu_v2",
    "float_status": (
        "npu_alloc_float_status npu_clear_float_status npu_clear_float_status_v2 npu_get_float_status "
        "npu_get_float_status_v2"
    ),
    "gelu_operators": "gelu gelu_grad",
    "gru": "dynamic_augru dynamic_gru_v2",
    "k_means_centroids": "k_means_centroids_v2",
    "lars": "lars lars_v2",
    "layer_norm": "fused_layer_norm fused_layer_norm_grad",
    "lstm": "basic_lstm_cell dynamic_rnn dynamic_rnn_v2",
    "nonzero": "non_zero non_zero_with_value non_zero_with_value_shape non_zero_with_value_shape_v2",
    "optimizer_updates": (
        "adam_apply_one_assign adam_apply_one_with_decay_assign lamb_apply_optimizer_assign lamb_apply_weight_assign"
    ),
    "prelu": "p_relu p_relu_grad",
    "random_choice_with_mask": "random_choice_with_mask stateless_random_choice_with_mask",
    "recurrent_gradients": (
        "basic_lstm_cell_c_state_grad basic_lstm_cell_input_grad basic_lstm_cell_weight_grad dynamic_augru_grad "
        "dynamic_gru_v2_grad dynamic_rnn_grad"
    ),
    "scatter_elements": "scatter_elements scatter_elements_v2",
    "stateless_dropout": "stateless_dropout",
}
# Operators whose function has another name, because the vendor has both.
_OTHER_NAMES = {
    "deformable_offsets_grad": ("deformable_conv2d", "deformable_offsets_grad_operator"),
    "dense_image_warp_grad": ("dense_image_warp", "dense_image_warp_grad_operator"),
    "k_means_centroids": ("k_means_centroids", "step"),
}
_HOME_OF = {name: (home, name) for home, names in _HOMES.items() for name in names.split()}
_HOME_OF.update(_OTHER_NAMES)
# Operators of the vendor's library that are not computed here.
_MISSING = """
adp_get_next ascend_anti_quant ascend_dequant ascend_quant ascend_weight_quant batch_dilate_polys batch_enqueue
cache_add cache_all_index_to_local cache_remote_index_to_local decode_image_v3 deinit_embedding_hashmap_v2 dequeue
device_queue_dataset dp_group_dataset dpop dynamic_get_next_v2 embedding_hash_table_apply_adam_w
embedding_hash_table_evict embedding_hash_table_export embedding_hash_table_import
embedding_hash_table_lookup_or_insert embedding_hashmap_export embedding_hashmap_file_size embedding_hashmap_import
embedding_hashmap_size file_constant ge_op geop_dataset get_next get_next_from_queue get_shape host_queue_dataset
init_embedding_hash_table init_embedding_hashmap_v2 load_and_execute_om log_time_stamp lru_cache lru_cache_v2 npu_init
npu_onnx_graph_op npu_shutdown ocr_detection_post_handle ocr_detection_pre_handle ocr_find_contours
ocr_identify_pre_handle ocr_recognition_pre_handle outfeed_dequeue_op outfeed_enqueue_op prod_env_mat_a
prod_force_se_a prod_virial_se_a queue_data queue_dataset resize_and_clip_polys resize_v2 table_to_resource_v2
tabulate_fusion tabulate_fusion_grad tabulate_fusion_se_a tabulate_fusion_se_a_grad warp_affine_v2
""".split()


def names() -> list[str]:
    """Return the names of all operators of the vendor's library."""
    return sorted([*_HOME_OF, *_MISSING])


def operator(name: str, owner: str) -> Callable[..., Any]:
    """Return an operator. One that is not in this release raises NotInThisRelease when it is called.

    Args:
        name: its name, as "fast_gelu".
        owner: how scripts call the library, for messages.
    Raises:
        AttributeError: the library has no such operator.
    """
    if name in _HOME_OF:
        home, own_name = _HOME_OF[name]
        function: Callable[..., Any] = getattr(importlib.import_module(f"npu_shim.ops.{home}"), own_name)
        return function
    if name not in _MISSING:
        raise AttributeError(f"{owner} has no operator {name!r}.{closest(name, names())}")

    def missing(*args: object, **kwargs: object) -> None:
        raise NotInThisRelease(
            f"{owner}.{name} is not part of this release of npu_shim. Write it in TensorFlow's own ops, or run it on "
            "an NPU with the vendor's package."
        )

    return missing
