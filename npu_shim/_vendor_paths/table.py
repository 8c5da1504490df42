"""The table of the vendor's module paths under the package npu_shim, so that a port by hand changes one word.

``npu_bridge.estimator.npu.npu_config`` becomes ``npu_shim.estimator.npu.npu_config``,
``npu_device.configs.npu_config`` becomes ``npu_shim.npu_device.configs.npu_config``,
and so on. The modules of graph mode with TensorFlow 2, ``npu_device.compat.v1.estimator``
and others, are second names of those of npu_bridge (``second_names.py``). The table lists where each name lives.
``generate.py`` writes the modules. The home of a name is imported when the name is first used. On an NPU, each name
of npu_bridge is the vendor's own object, except those of ALWAYS_OWN.
"""

from __future__ import annotations

from typing import Sequence

NPU_ONLY = "ops.npu_only:"  # followed by the name of a module in ops/npu_only.py

# Homes whose names are npu_shim's on an NPU too; docs/vendor-differences.md has the reasons.
ALWAYS_OWN = (
    "config.install",
    "config.nested",
    "config.run_config",
    "distributed.ranks",
    "estimator.keras_to_npu",
    "estimator.npu_estimator",
    "experimental.get_shape",
    "experimental.image",
    "ops.keras_dropout",
    "training.strategy",
)
# Modules that npu_bridge does not have, or that cannot be imported from it
OUTSIDE_NPU_BRIDGE = ("_api", "hccl.manage", "hccl.split", "npu_device.")
# vendor module -> (npu_shim module, names) ...; both relative to the root package
TABLE: dict[str, Sequence[tuple[str, str]]] = {
    "_api": (),
    "_api.experimental": (("experimental.get_shape", "getshape"), ("experimental.image", "decode_image")),
    "estimator.npu": (),
    "estimator.npu.keras_to_npu": (("estimator.keras_to_npu", "model_to_npu_estimator"),),
    "estimator.npu.npu_callbacks": (
        ("training.broadcasting", "broadcast_global_variables"),
        ("training.callbacks", "BroadcastGlobalVariablesCallbackImpl NPUBroadcastGlobalVariablesCallback"),
    ),
    "estimator.npu.npu_common": (("estimator.job_info", "DeviceInfo JobConfig JobInfo NPUBasics"),),
    "estimator.npu.npu_config": (
        ("config.install", "decorator_tf_session set_npu_default_config"),
        (
            "config.nested",
            "DumpConfig DynamicInputConfig ExperimentalConfig GraphMemoryOptimizeConfig MemoryConfig ProfilingConfig",
        ),
        ("config.run_config", "NPURunConfig"),
        ("ops.scopes", "NpuExecutePlacement"),
    ),
    "estimator.npu.npu_convert_dropout": (("ops.keras_dropout", "dropout_call switch_keras_dropout"),),
    "estimator.npu.npu_dynamic_rnn": (
        (
            "ops.dynamic_rnn",
            "DYNAMIC_RNN_BIDIRECTION DYNAMIC_RNN_REDIRECTIONAL DYNAMIC_RNN_UNIDIRECTION DynamicAUGRU DynamicGRUV2 "
            "DynamicRNN",
        ),
    ),
    "estimator.npu.npu_estimator": (
        ("_tensorflow.tf_estimator", "no_check_override"),
        ("estimator.npu_estimator", "NPUEstimator"),
        ("estimator.spec", "NPUEstimatorSpec"),
    ),
    "estimator.npu.npu_hook": (
        ("training.broadcasting", "NPUBroadcastGlobalVariablesHook broadcast_global_variables"),
        (
            "estimator.hooks",
            "NPUCheckpointSaverHook NPUOutputTensorHook SetIterationsVarHook TellMeStepOrLossHook",
        ),
        ("estimator.outfeed_hooks", "NPUInfeedOutfeedSessionHook NPULogOutfeedSessionHook NPUShutDownHook"),
    ),
    "estimator.npu.npu_loss_scale_manager": (
        ("optimizer.loss_scale_manager", "ExponentialUpdateLossScaleManager FixedLossScaleManager"),
    ),
    "estimator.npu.npu_loss_scale_optimizer": (
        (
            "optimizer.loss_scale_manager",
            "FixedLossScaleManager",
        ),  # the vendor's module imports it, and scripts from there
        ("optimizer.loss_scale_optimizer", "NPULossScaleOptimizer"),
    ),
    "estimator.npu.npu_optimizer": (
        (
            "optimizer.distributed",
            "NPUDistributedOptimizer allreduce npu_allreduce npu_distributed_optimizer_wrapper reduce",
        ),
        ("optimizer.keras", "KerasDistributeOptimizer"),
        ("optimizer.npu_optimizer", "NPUOptimizer"),
    ),
    "estimator.npu.npu_plugin": (
        (
            "config.plugin",
            "check_graph_run_mode init_debug_dir init_op_compiler_cache_dir init_op_compiler_cache_mode "
            "init_rdma_pool is_inf_nan_enabled npu_close npu_resource_init "
            "npu_resource_shutdown rdma_remote_init rdma_remote_register set_device_sat_mode",
        ),
        ("distributed.remote_memory", "get_rdma_cache get_var_addr_and_size malloc_shared_memory"),
    ),
    "estimator.npu.npu_rnn": (("ops.rnn", "npu_dynamic_rnn"),),
    "estimator.npu.npu_saver": (("training.saver", "NPUBulkSaverBuilder NPUSaver"),),
    "estimator.npu.npu_scope": (
        (
            "ops.scopes",
            "disable_autofuse keep_dtype_scope limit_core_num_scope npu_graph_slice_scope "
            "npu_mem_type_scope npu_optimizer_scope npu_qos_label_scope npu_recompute_scope npu_stage_scope "
            "npu_variable_scope npu_weight_prefetch_scope op_specified_engine_scope "
            "subgraph_multi_dims_scope without_npu_compile_scope",
        ),
    ),
    "estimator.npu.npu_strategy": (("training.strategy", "NPUExtended NPUStrategy"),),
    "estimator.npu.util": (
        (
            "estimator.checks",
            "check_aoe_mode check_bool_type check_nonnegative_integer check_not_none check_path "
            "check_positive_integer check_profiling_options convert_bool_to_int format_string "
            "get_ranksize",
        ),
        ("config.graph_execution", "set_graph_exec_config"),
        (
            "ops.node_attributes",
            "keep_tensors_dtypes npu_compile set_op_input_tensor_multi_dims "
            "set_op_tensor_max_range set_op_tensor_max_size variable_initializer_in_host",
        ),
        (
            "optimizer.gradient_shares",
            "GradDivisionItem add_grads_and_vars fair_division get_all_grad_item get_gid_by_grad get_gid_by_weight "
            "get_value global_dict_init set_value",
        ),
        ("optimizer.iterations_per_loop", "IterationPerLoop set_iteration_per_loop"),
        ("optimizer.loop_variables", "create_or_get_var register_func"),
    ),
    "estimator.npu_aicore_ops": (
        ("ops.centralization", "centralization"),
        ("ops.deep_potential", "prod_env_mat_a prodforcesea prodvirialsea"),
        ("ops.dropout_bytes", "dropout_v3 dropout_v4"),
        ("ops.fast_gelu", "fast_gelu_v2"),
        ("ops.gradient_functions", "prelu_grad"),
        ("ops.layer_norm", "layer_norm"),
        ("ops.lru_cache_v2", "lru_cache_v2"),
        ("ops.nonzero", "nonzero nonzerowithvalue"),
        ("ops.prelu", "prelu"),
        ("ops.tabulate_fusion", "tabulatefusion tabulatefusiongrad tabulatefusionsea tabulatefusionseagrad"),
        ("ops.unary_ops", "npu_aicore_ops"),
    ),
    "estimator.npu_ops": (
        ("ops.dropout", "dropout"),
        (
            "ops.gradient_functions",
            "basic_lstm_cell_grad dynamic_augru_grad dynamic_gru_v2_grad dynamic_rnn_grad dynamic_rnn_v2_grad",
        ),
        ("ops.graph_operators", "adam_apply_one_assign adam_apply_one_with_decay_assign basic_lstm_cell"),
        ("ops.k_means_centroids", "k_means_centroids"),
        ("ops.lars", "LARS LARSV2"),
        ("ops.outfeed", "outfeed_dequeue_op outfeed_enqueue_op stop_outfeed_dequeue_op"),
        ("ops.scatter_elements", "scatter_elements"),
        ("ops.system", "NPUInit NPUShutdown initialize_system shutdown_system"),
        (NPU_ONLY + "npu_ops", ""),
    ),
    "estimator.npu_unary_ops": (("ops.gelu", "gelu"), ("ops.unary_ops", "npu_unary_ops")),
    "experimental": (),
    "experimental.file_constant": (("ops.library", "file_constant"),),
    "experimental.get_shape": (("ops.library", "getshape"),),
    "experimental.hccl": (("ops.library", "c_str get_actual_rank_size get_user_rank_id get_user_rank_size"),),
    "experimental.image": (("ops.library", "decode_image"),),
    "hccl": (),
    "hccl.hccl_ops": (
        (
            "distributed.hccl_ops",
            "all_to_all_v all_to_all_v_c allgather allreduce broadcast gather_all_to_all_v receive "
            "reduce reduce_scatter remote_read remote_ref_read remote_scatter_write remote_write "
            "send",
        ),
    ),
    "hccl.manage": (),
    "hccl.manage.api": (
        (
            "distributed.ranks",
            "create_group destroy_group get_group_rank_from_world_rank get_local_rank_id "
            "get_local_rank_size get_rank_id get_rank_size get_world_rank_from_group_rank",
        ),
    ),
    "hccl.split": (),
    "hccl.split.api": (("distributed.ranks", "set_split_strategy_by_idx set_split_strategy_by_size"),),
    "helper": (),
    "helper.helper": (("ops.library", "get_gen_ops version"),),
    "image": (),
    "image.image_ops": (("ops.image_resize", "decode_and_crop_and_resize_jpeg decode_and_resize_jpeg"),),
    "npu_device.configs.aoe_config": (("npu_device.option_classes", "NpuAoeConfig"),),
    "npu_device.configs.dump_config": (("npu_device.option_classes", "NpuDumpConfig"),),
    "npu_device.configs.experimental_config": (("npu_device.option_classes", "NpuExperimentalConfig"),),
    "npu_device.configs.logical_device_deploy_config": (("npu_device.option_classes", "LogicalDeviceDeployConfig"),),
    "npu_device.configs.memory_config": (("npu_device.option_classes", "MemoryConfig"),),
    "npu_device.configs.memory_optimize_config": (("npu_device.option_classes", "GraphMemoryOptimizeConfig"),),
    "npu_device.configs.model_deploy_config": (("npu_device.option_classes", "ModelDeployConfig"),),
    "npu_device.configs.multi_branches_config": (("npu_device.option_classes", "NpuMultiBranchesConfig"),),
    "npu_device.configs.npu_config": (("npu_device.option_classes", "NpuConfig"),),
    "npu_device.configs.npu_run_context_option": (("npu_device.option_classes", "NpuRunContextOptions"),),
    "npu_device.configs.option_base": (("npu_device.option_classes", "DeprecatedValue NpuBaseConfig OptionValue"),),
    "npu_device.configs.profiling_config": (("npu_device.option_classes", "NpuProfilingConfig"),),
    "npu_cpu": (),
    "npu_cpu.lru_cache": (("ops.lru_cache", "LruCache"),),
    "npu_cpu.npu_cpu_ops": (
        ("ops.batch_queue", "batch_enqueue dequeue"),
        ("ops.dense_image_warp", "dense_image_warp dense_image_warp_grad"),
        ("ops.embedding_adam_w", "embedding_hashtable_apply_adam_w"),
        (
            "ops.embedding_files",
            "embedding_hashmap_export_v2 embedding_hashmap_file_size_v2 embedding_hashmap_import_v2",
        ),
        ("ops.embedding_index", "embedding_local_index embeddingrankid"),
        (
            "ops.embedding_tables",
            "deinit_embedding_hashmap_v2 embedding_hash_table_export embedding_hash_table_import "
            "embedding_hashmap_table_size_v2 embedding_hashtable_lookup_or_insert init_embedding_hashmap_v2 "
            "init_embedding_hashtable table_to_resource_v2",
        ),
        ("ops.feature_mapping", "device_feature_mapping host_feature_mapping"),
        ("ops.image_resize", "resize_v2 warp_affine_v2"),
        ("ops.nonzero", "non_zero_with_value_shape non_zero_with_value_shape_v2"),
        ("ops.random_choice_with_mask", "randomchoicewithmask stateless_random_choice_with_mask"),
        ("ops.stateless_dropout", "stateless_dropout"),
        (NPU_ONLY + "npu_cpu_ops", ""),
    ),
    "profiler": (),
    "profiler.profiler": (("ops.context_managers", "Profiler"),),
    "scoped_graph_manager": (),
    "scoped_graph_manager.scoped_graph_manager": (("ops.context_managers", "ScopedGraphManager"),),
    "tbe": (),
    "tbe.npu_cube_ops": (("ops.deformable_conv2d", "deformable_conv2d deformable_offsets_grad"),),
    "tbe.npu_vector_ops": (
        ("ops.graph_operators", "lamb_apply_optimizer_assign lamb_apply_weight_assign"),
        ("ops.prelu_layer", "PReLU"),
    ),
    "tf_adapter": (
        (
            "config.adapter",
            "Clear EnableControl GetDeviceSatMode GetVarAddrAndSize InitRdmaPool MallocSharedMem NpuClose "
            "PluginFinalize PluginInit ProfilerStart ProfilerStop RdmaInitAndRegister RegistRdmaRemoteAddr "
            "SetDeviceSatMode",
        ),
        ("ops.library", "DT_DOUBLE DT_FLOAT DT_HALF DT_INT32 DT_INT64 DT_UINT64"),
    ),
}
GRAPH_MODE = "npu_device.compat.v1."
_NOT_IN_GRAPH_MODE = ("npu_device.", "hccl.manage", "hccl.split")
IN_GRAPH_MODE = ("estimator", *(module for module in TABLE if not module.startswith(_NOT_IN_GRAPH_MODE)))
ON_IMPORT = {"estimator.npu.npu_convert_dropout": "switch_keras_dropout()"}  # as in the vendor's module


def names_of(source: str, names: str) -> list[str]:
    """Return the names of a row: those listed, or all of a table of ops/npu_only.py."""
    if names:
        return names.split()
    from npu_shim.ops.npu_only import SIGNATURES

    return list(SIGNATURES[source[len(NPU_ONLY) :]])
