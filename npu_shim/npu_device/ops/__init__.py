"""Operators for TensorFlow 2: ``npu.ops``."""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {"npu_shim.npu_device.ops.train_ops": "gelu"})
