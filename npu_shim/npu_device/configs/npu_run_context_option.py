"""The vendor's npu_device.configs.npu_run_context_option. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from typing import TYPE_CHECKING

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.npu_device.option_classes import NpuRunContextOptions
else:
    __getattr__, __dir__ = _vendor_names(__name__)

__all__ = ["NpuRunContextOptions"]
