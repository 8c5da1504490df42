"""Graph mode with TensorFlow 2: ``npu.compat.v1`` and the star import of ``npu_device.compat.v1.npu_init``."""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__all__ = ["SessionConfigBuilder"]
__getattr__, __dir__ = lazy_names(__name__, {"npu_shim.npu_device.compat.utils": "SessionConfigBuilder"})
