"""The vendor's npu_bridge.estimator.npu.npu_plugin. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.config.plugin import check_graph_run_mode
from npu_shim.config.plugin import init_rdma_pool
from npu_shim.config.plugin import is_inf_nan_enabled
from npu_shim.config.plugin import npu_close
from npu_shim.config.plugin import npu_resource_init
from npu_shim.config.plugin import npu_resource_shutdown
from npu_shim.config.plugin import rdma_remote_init
from npu_shim.config.plugin import rdma_remote_register
from npu_shim.config.plugin import set_device_sat_mode
from npu_shim.ops.not_yet import functions as _functions

__all__ = [
    "check_graph_run_mode",
    "init_rdma_pool",
    "is_inf_nan_enabled",
    "npu_close",
    "npu_resource_init",
    "npu_resource_shutdown",
    "rdma_remote_init",
    "rdma_remote_register",
    "set_device_sat_mode",
]
globals().update(_functions("npu_plugin"))
__all__ += list(_functions("npu_plugin"))
