"""The vendor's npu_bridge.estimator.npu.npu_plugin. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.config.plugin import (
    check_graph_run_mode, init_debug_dir, init_op_compiler_cache_dir, init_op_compiler_cache_mode, init_rdma_pool,
    is_inf_nan_enabled, npu_close, npu_resource_init, npu_resource_shutdown, rdma_remote_init, rdma_remote_register,
    set_device_sat_mode,
)
from npu_shim.distributed.remote_memory import get_rdma_cache, get_var_addr_and_size, malloc_shared_memory

__all__ = [
    "check_graph_run_mode", "get_rdma_cache", "get_var_addr_and_size", "init_debug_dir", "init_op_compiler_cache_dir",
    "init_op_compiler_cache_mode", "init_rdma_pool", "is_inf_nan_enabled", "malloc_shared_memory", "npu_close",
    "npu_resource_init", "npu_resource_shutdown", "rdma_remote_init", "rdma_remote_register", "set_device_sat_mode",
]
