"""The vendor's npu_device.compat.v1.estimator.npu.npu_callbacks. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.estimator.npu import npu_callbacks

sys.modules[__name__] = npu_callbacks
