"""The vendor's npu_bridge.npu_cpu.npu_cpu_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.batch_queue import batch_enqueue, dequeue
from npu_shim.ops.dense_image_warp import dense_image_warp, dense_image_warp_grad
from npu_shim.ops.embedding_adam_w import embedding_hashtable_apply_adam_w
from npu_shim.ops.embedding_files import (
    embedding_hashmap_export_v2, embedding_hashmap_file_size_v2, embedding_hashmap_import_v2,
)
from npu_shim.ops.embedding_index import embedding_local_index, embeddingrankid
from npu_shim.ops.embedding_tables import (
    deinit_embedding_hashmap_v2, embedding_hash_table_export, embedding_hash_table_import,
    embedding_hashmap_table_size_v2, embedding_hashtable_lookup_or_insert, init_embedding_hashmap_v2,
    init_embedding_hashtable, table_to_resource_v2,
)
from npu_shim.ops.feature_mapping import device_feature_mapping, host_feature_mapping
from npu_shim.ops.image_resize import resize_v2, warp_affine_v2
from npu_shim.ops.nonzero import non_zero_with_value_shape, non_zero_with_value_shape_v2
from npu_shim._host.lazy_names import (
    missing as batch_dilate_polys, missing as ocr_detection_post_handle, missing as ocr_detection_pre_handle,
    missing as ocr_find_contours, missing as ocr_identify_pre_handle, missing as ocr_recognition_pre_handle,
    missing as resize_and_clip_polys,
)
from npu_shim.ops.random_choice_with_mask import randomchoicewithmask, stateless_random_choice_with_mask
from npu_shim.ops.stateless_dropout import stateless_dropout

__all__ = [
    "batch_dilate_polys", "batch_enqueue", "deinit_embedding_hashmap_v2", "dense_image_warp", "dense_image_warp_grad",
    "dequeue", "device_feature_mapping", "embedding_hash_table_export", "embedding_hash_table_import",
    "embedding_hashmap_export_v2", "embedding_hashmap_file_size_v2", "embedding_hashmap_import_v2",
    "embedding_hashmap_table_size_v2", "embedding_hashtable_apply_adam_w", "embedding_hashtable_lookup_or_insert",
    "embedding_local_index", "embeddingrankid", "host_feature_mapping", "init_embedding_hashmap_v2",
    "init_embedding_hashtable", "non_zero_with_value_shape", "non_zero_with_value_shape_v2",
    "ocr_detection_post_handle", "ocr_detection_pre_handle", "ocr_find_contours", "ocr_identify_pre_handle",
    "ocr_recognition_pre_handle", "randomchoicewithmask", "resize_and_clip_polys", "resize_v2", "stateless_dropout",
    "stateless_random_choice_with_mask", "table_to_resource_v2", "warp_affine_v2",
]
