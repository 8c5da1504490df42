"""The vendor's npu_bridge.npu_cpu.npu_cpu_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

__getattr__, __dir__ = _vendor_names(__name__)
