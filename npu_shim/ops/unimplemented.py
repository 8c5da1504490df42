"""Signatures of the vendor's functions that are not in this release, by module.

Each function can be imported, and raises NotInThisRelease when it is called. A
default that is a TensorFlow type in the vendor's package is None here.
"""

from __future__ import annotations

from typing import Callable, NoReturn

from npu_shim._lazy_names import not_in_this_release

SIGNATURES: dict[str, dict[str, str]] = {
    "npu_ops": {
        "stop_outfeed_dequeue_op": "(channel_name, name=None)",
        "npu_onnx_graph_op": "(inputs, tout, model_path, name=None)",
        "channel_get_next": "(channel_name, output_types, output_shapes)",
    },
    "npu_aicore_ops": {
        "tabulatefusionseagrad": "(table, table_info, em_x, em, dy_dem_x, dy_dem, name=None)",
        "tabulatefusiongrad": "(table, table_info, em_x, em, dy_dem_x, dy_dem, name=None)",
        "lru_cache_v2": "(index_list, data, cache, tag, is_last_call, pre_route_count, name=None)",
        "prod_env_mat_a": (
            "(coord, types, natoms, box, mesh, davg, dstd, rcut_a=0.0, rcut_r=0.0, rcut_r_smth=0.0, "
            "sel_a=None, sel_r=None, name=None)"
        ),
        "prodvirialsea": "(net_deriv, in_deriv, rij, nlist, natoms, n_a_sel=0, n_r_sel=0, name=None)",
        "prodforcesea": "(net_deriv, in_deriv, nlist, natoms, n_a_sel=0, n_r_sel=0, name=None)",
        "tabulatefusionsea": "(table, table_info, em_x, em, last_layer_size=128, name=None)",
        "tabulatefusion": "(table, table_info, em_x, em, last_layer_size=128, name=None)",
    },
    "npu_optimizer": {
        "reduce": "(tensor, root_rank, average=True, fusion=0, fusion_id=-1)",
    },
    "npu_plugin": {
        "init_op_compiler_cache_mode": "(init, op_compiler_cache_mode)",
        "init_op_compiler_cache_dir": "(init, op_compiler_cache_dir)",
        "init_debug_dir": "(init, debug_dir)",
    },
    "util": {
        "register_func": "(var_name)",
        "fair_division": "(inputs, number)",
        "GradDivisionItem": "(grad, var)",
        "add_grads_and_vars": "(grads_and_vars, rank_size)",
        "get_gid_by_grad": "(grad)",
        "get_gid_by_weight": "(weight)",
        "get_all_grad_item": "()",
        "global_dict_init": "()",
        "set_value": "(key, value)",
        "get_value": "(key, def_value=None)",
    },
    "npu_cpu_ops": {
        "batch_enqueue": "(x, queue_id=0, batch_size=8, queue_name='', queue_depth=100, pad_mode='REPLICATE')",
        "ocr_recognition_pre_handle": (
            "(imgs_data, imgs_offset, imgs_size, langs, langs_score, batch_size=8, data_format='NHWC', "
            "pad_mode='REPLICATE')"
        ),
        "ocr_detection_pre_handle": "(img, data_format='NHWC')",
        "ocr_identify_pre_handle": "(imgs_data, imgs_offset, imgs_size, size, data_format='NHWC')",
        "batch_dilate_polys": (
            "(polys_data, polys_offset, polys_size, score, min_border, min_area_thr, score_thr, expand_scale)"
        ),
        "ocr_find_contours": "(img, value_mode=0)",
        "dequeue": "(queue_id, output_type, output_shape, queue_name='')",
        "ocr_detection_post_handle": "(img, polys_data, polys_offset, polys_size, data_format='NHWC')",
        "warp_affine_v2": (
            "(x, matrix, dst_size, interploation='INTEL_BILINEAR', border_type='BORDER_CONSTANT', border_value=0)"
        ),
        "resize_v2": "(x, dst_size, interploation='INTEL_BILINEAR')",
        "resize_and_clip_polys": "(polys_data, polys_offset, polys_size, h_scale, w_scale, img_h, img_w)",
        "host_feature_mapping": "(feature_id, threshold=1, table_name='default_table_name')",
        "device_feature_mapping": "(feature_id)",
        "embedding_hashmap_export_v2": (
            "(file_path, table_ids, table_names, global_step, keys, counters, filter_flag, values, num)"
        ),
        "embedding_hashmap_file_size_v2": "(file_path, table_ids, table_names, global_step, embedding_dims)",
        "embedding_hashmap_import_v2": (
            "(file_path, table_ids, table_sizes, table_names, global_step, embedding_dims, num)"
        ),
        "embedding_hashtable_apply_adam_w": (
            "(table_handle, keys, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, "
            "grad, max_grad_norm, embedding_dim, bucket_size, amsgrad, maximize)"
        ),
    },
    "image_ops": {
        "decode_and_crop_and_resize_jpeg": "(image, crop_size, size)",
        "decode_and_resize_jpeg": "(image, size)",
    },
    "tf_adapter": {
        "Clear": "()",
        "EnableControl": "()",
        "GetDeviceSatMode": "()",
        "GetVarAddrAndSize": "(var_name)",
        "InitRdmaPool": "(size)",
        "MallocSharedMem": "(var_name, dims, data_type)",
        "NpuClose": "()",
        "PluginFinalize": "()",
        "PluginInit": "(init_options)",
        "ProfilerStart": "(level, aic_metrics, output_path)",
        "ProfilerStop": "()",
        "RdmaInitAndRegister": "(var_info, size)",
        "RegistRdmaRemoteAddr": "(var_info)",
        "SetDeviceSatMode": "(mode)",
    },
}

_INSTEAD = "Write it in TensorFlow's own ops, or run it on an NPU with the vendor's package."


def function(module: str, name: str) -> Callable[..., NoReturn]:
    """Return a function of a module that raises NotInThisRelease."""
    return not_in_this_release(f"{module}.{name}", SIGNATURES[module][name], _INSTEAD)
