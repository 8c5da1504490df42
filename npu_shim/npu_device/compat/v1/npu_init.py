"""The star import of graph mode with TensorFlow 2: ``from npu_shim.npu_device.compat.v1.npu_init import *``.

It has the names of npu_shim.npu_init. The vendor's lacks the loss scaling of TensorFlow 1 (NPULossScaleOptimizer and
the loss scale managers).
"""

from __future__ import annotations

from npu_shim import npu_init as _npu_init
from npu_shim.npu_init import *  # noqa: F403

__all__ = _npu_init.__all__
