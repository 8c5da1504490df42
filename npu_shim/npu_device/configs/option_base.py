"""The vendor's npu_device.configs.option_base. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.npu_device.option_classes import DeprecatedValue, NpuBaseConfig, OptionValue
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["DeprecatedValue", "NpuBaseConfig", "OptionValue"]
