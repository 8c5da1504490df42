"""The vendor's npu_device.configs.aoe_config. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.npu_device.option_classes import NpuAoeConfig

__all__ = ["NpuAoeConfig"]
