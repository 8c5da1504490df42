"""Options: ``npu.configs.run_context_options()``."""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names
from npu_shim.npu_device.option_classes import NpuRunContextOptions as run_context_options

__all__ = ["experimental", "run_context_options"]
__getattr__, __dir__ = lazy_names(__name__, {"npu_shim.npu_device.configs.experimental": "experimental"})
