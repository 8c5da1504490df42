"""The vendor's npu_bridge.estimator.npu.npu_config. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.config.install import decorator_tf_session, set_npu_default_config
from npu_shim.config.nested import (
    DumpConfig, DynamicInputConfig, ExperimentalConfig, GraphMemoryOptimizeConfig, MemoryConfig, ProfilingConfig,
)
from npu_shim.config.run_config import NPURunConfig
from npu_shim.ops.scopes import NpuExecutePlacement

__all__ = [
    "DumpConfig", "DynamicInputConfig", "ExperimentalConfig", "GraphMemoryOptimizeConfig", "MemoryConfig",
    "NPURunConfig", "NpuExecutePlacement", "ProfilingConfig", "decorator_tf_session", "set_npu_default_config",
]
