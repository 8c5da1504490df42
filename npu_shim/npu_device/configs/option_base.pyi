"""The vendor's npu_device.configs.option_base. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.npu_device.option_classes import DeprecatedValue, NpuBaseConfig, OptionValue

__all__ = ["DeprecatedValue", "NpuBaseConfig", "OptionValue"]
