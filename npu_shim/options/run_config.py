"""Arguments of NPURunConfig that are not NPU options, and the order of all its arguments."""

from __future__ import annotations

from npu_shim.options.option import argument

ROWS = (
    argument("profiling_config", "A ProfilingConfig.", holds="ProfilingConfig"),
    argument("model_dir", "Directory of checkpoints."),
    argument("tf_random_seed", "Graph seed."),
    argument("save_summary_steps", "Steps between summaries; 0 writes none.", 0),
    argument("save_checkpoints_steps", "Steps between checkpoints; 100 when neither this nor _secs is given."),
    argument("save_checkpoints_secs", "Seconds between checkpoints."),
    argument("session_config", "A ConfigProto to start from."),
    argument("keep_checkpoint_max", "How many checkpoints to keep.", 5),
    argument("keep_checkpoint_every_n_hours", "Keep one for good every so many hours.", 10000),
    argument("log_step_count_steps", "Steps between log lines.", 100),
    argument("distribute", "A ParameterServerStrategy for a cluster of TF_CONFIG."),
    argument("dump_config", "A DumpConfig.", holds="DumpConfig"),
    argument("horovod_mode", "True leaves the broadcast of variables to Horovod.", False),
    argument("dynamic_input_config", "A DynamicInputConfig.", holds="DynamicInputConfig"),
    argument("train_distribute", "A strategy for training, handed to RunConfig."),
    argument("eval_distribute", "A strategy for evaluation, handed to RunConfig."),
    argument("memory_config", "A MemoryConfig.", holds="MemoryConfig"),
    argument("experimental_config", "An ExperimentalConfig.", holds="ExperimentalConfig"),
)

ARGUMENT_ORDER = tuple(
    """
    iterations_per_loop profiling_config model_dir tf_random_seed save_summary_steps save_checkpoints_steps
    save_checkpoints_secs session_config keep_checkpoint_max keep_checkpoint_every_n_hours log_step_count_steps
    distribute enable_data_pre_proc precision_mode enable_reduce_precision variable_format_optimize mix_compile_mode
    hcom_parallel graph_memory_max_size variable_memory_max_size dump_config stream_max_parallel_num
    is_tailing_optimization horovod_mode graph_run_mode op_debug_level enable_scope_fusion_passes
    enable_exception_dump op_select_implmode optypelist_for_implmode dynamic_input_config aoe_mode work_path
    buffer_optimize enable_small_channel fusion_switch_file enable_compress_weight compress_weight_conf
    op_compiler_cache_mode op_compiler_cache_dir debug_dir hcom_multi_mode dynamic_input dynamic_graph_execute_mode
    dynamic_inputs_shape_range train_distribute eval_distribute local_rank_id local_device_list session_device_id
    distribute_config modify_mixlist op_precision_mode device_type soc_config hccl_timeout op_wait_timeout
    op_execute_timeout HCCL_algorithm customize_dtypes op_debug_config memory_config experimental_config
    topo_sorting_mode aoe_config_file insert_op_file stream_sync_timeout event_sync_timeout external_weight
    deterministic frozen_variable variable_placement jit_compile precision_mode_v2 ac_parallel_enable quant_dumpable
    input_fusion_size compile_dynamic_mode graph_max_parallel_model_num export_compile_stat aicore_num
    oo_constant_folding input_batch_cpy shape_generalization_mode all_tensor_not_empty auto_multistream_parallel_mode
    oo_level optimization_switch
    """.split()
)
