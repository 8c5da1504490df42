"""The classes of the options for TensorFlow 2, on an NPU the vendor's."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim.config.device_options import *  # noqa: F403

# the vendor's module below npu_device.configs -> its classes
_MODULES = {
    "aoe_config": "NpuAoeConfig",
    "dump_config": "NpuDumpConfig",
    "experimental_config": "NpuExperimentalConfig",
    "logical_device_deploy_config": "LogicalDeviceDeployConfig",
    "memory_config": "MemoryConfig",
    "memory_optimize_config": "GraphMemoryOptimizeConfig",
    "model_deploy_config": "ModelDeployConfig",
    "multi_branches_config": "NpuMultiBranchesConfig",
    "npu_config": "NpuConfig",
    "npu_run_context_option": "NpuRunContextOptions",
    "option_base": "DeprecatedValue NpuBaseConfig OptionValue",
    "profiling_config": "NpuProfilingConfig",
}
if host_device.has_npu_device():
    for _module, _names in _MODULES.items():
        _served = host_device.vendor(f"npu_device.configs.{_module}")
        globals().update((_name, getattr(_served, _name)) for _name in _names.split())
