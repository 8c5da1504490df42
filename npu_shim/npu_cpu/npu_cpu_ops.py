"""The vendor's npu_bridge.npu_cpu.npu_cpu_ops. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    embedding_hashtable_lookup_or_insert: Callable[..., Any]
    embeddingrankid: Callable[..., Any]
    embedding_local_index: Callable[..., Any]
    randomchoicewithmask: Callable[..., Any]
    dense_image_warp: Callable[..., Any]
    stateless_dropout: Callable[..., Any]
    dense_image_warp_grad: Callable[..., Any]
    batch_enqueue: Callable[..., Any]
    ocr_recognition_pre_handle: Callable[..., Any]
    ocr_detection_pre_handle: Callable[..., Any]
    ocr_identify_pre_handle: Callable[..., Any]
    batch_dilate_polys: Callable[..., Any]
    ocr_find_contours: Callable[..., Any]
    dequeue: Callable[..., Any]
    ocr_detection_post_handle: Callable[..., Any]
    warp_affine_v2: Callable[..., Any]
    resize_v2: Callable[..., Any]
    resize_and_clip_polys: Callable[..., Any]
    non_zero_with_value_shape: Callable[..., Any]
    non_zero_with_value_shape_v2: Callable[..., Any]
    host_feature_mapping: Callable[..., Any]
    device_feature_mapping: Callable[..., Any]
    init_embedding_hashmap_v2: Callable[..., Any]
    deinit_embedding_hashmap_v2: Callable[..., Any]
    table_to_resource_v2: Callable[..., Any]
    embedding_hashmap_table_size_v2: Callable[..., Any]
    embedding_hashmap_export_v2: Callable[..., Any]
    embedding_hashmap_file_size_v2: Callable[..., Any]
    embedding_hashmap_import_v2: Callable[..., Any]
    init_embedding_hashtable: Callable[..., Any]
    embedding_hash_table_import: Callable[..., Any]
    stateless_random_choice_with_mask: Callable[..., Any]
    embedding_hash_table_export: Callable[..., Any]
    embedding_hashtable_apply_adam_w: Callable[..., Any]
else:
    __getattr__, __dir__ = _lazy_names(__name__, {
        "npu_shim.ops.unimplemented:npu_cpu_ops": (
            "embedding_hashtable_lookup_or_insert embeddingrankid embedding_local_index randomchoicewithmask "
            "dense_image_warp stateless_dropout dense_image_warp_grad batch_enqueue ocr_recognition_pre_handle "
            "ocr_detection_pre_handle ocr_identify_pre_handle batch_dilate_polys ocr_find_contours dequeue "
            "ocr_detection_post_handle warp_affine_v2 resize_v2 resize_and_clip_polys non_zero_with_value_shape "
            "non_zero_with_value_shape_v2 host_feature_mapping device_feature_mapping init_embedding_hashmap_v2 "
            "deinit_embedding_hashmap_v2 table_to_resource_v2 embedding_hashmap_table_size_v2 "
            "embedding_hashmap_export_v2 embedding_hashmap_file_size_v2 embedding_hashmap_import_v2 "
            "init_embedding_hashtable embedding_hash_table_import stateless_random_choice_with_mask "
            "embedding_hash_table_export embedding_hashtable_apply_adam_w"
        ),
    })

__all__ = [
    "batch_dilate_polys",
    "batch_enqueue",
    "deinit_embedding_hashmap_v2",
    "dense_image_warp",
    "dense_image_warp_grad",
    "dequeue",
    "device_feature_mapping",
    "embedding_hash_table_export",
    "embedding_hash_table_import",
    "embedding_hashmap_export_v2",
    "embedding_hashmap_file_size_v2",
    "embedding_hashmap_import_v2",
    "embedding_hashmap_table_size_v2",
    "embedding_hashtable_apply_adam_w",
    "embedding_hashtable_lookup_or_insert",
    "embedding_local_index",
    "embeddingrankid",
    "host_feature_mapping",
    "init_embedding_hashmap_v2",
    "init_embedding_hashtable",
    "non_zero_with_value_shape",
    "non_zero_with_value_shape_v2",
    "ocr_detection_post_handle",
    "ocr_detection_pre_handle",
    "ocr_find_contours",
    "ocr_identify_pre_handle",
    "ocr_recognition_pre_handle",
    "randomchoicewithmask",
    "resize_and_clip_polys",
    "resize_v2",
    "stateless_dropout",
    "stateless_random_choice_with_mask",
    "table_to_resource_v2",
    "warp_affine_v2",
]
