"""The vendor's npu_device.compat.v1.estimator.npu.util. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.estimator.npu import util

sys.modules[__name__] = util
