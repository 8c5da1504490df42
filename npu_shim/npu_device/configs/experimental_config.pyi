"""The vendor's npu_device.configs.experimental_config. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.npu_device.option_classes import NpuExperimentalConfig

__all__ = ["NpuExperimentalConfig"]
