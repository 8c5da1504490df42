"""Graph mode with TensorFlow 2: ``npu.compat``."""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__, {"npu_shim.npu_device.npu_device": "enable_v1", "npu_shim.npu_device.compat.v1": "v1"}
)
