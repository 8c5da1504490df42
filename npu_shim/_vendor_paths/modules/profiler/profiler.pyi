"""The vendor's npu_bridge.profiler.profiler. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.context_managers import Profiler

__all__ = ["Profiler"]
