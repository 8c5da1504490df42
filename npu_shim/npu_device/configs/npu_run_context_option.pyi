"""The vendor's npu_device.configs.npu_run_context_option. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.npu_device.option_classes import NpuRunContextOptions

__all__ = ["NpuRunContextOptions"]
