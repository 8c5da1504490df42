"""Graph mode with TensorFlow 2: ``npu.compat.v1`` and the star import of ``npu_device.compat.v1.npu_init``.

Its other modules, such as ``npu_device.compat.v1.estimator.npu.npu_config``, are those of npu_bridge.
"""

from __future__ import annotations

from npu_shim._host.lazy_names import lazy_names
from npu_shim._vendor_paths import second_names

__getattr__, __dir__ = lazy_names(__name__, {"npu_shim.npu_device.compat.utils": "SessionConfigBuilder"})
second_names.install()
