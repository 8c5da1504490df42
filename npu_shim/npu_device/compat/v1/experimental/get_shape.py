"""The vendor's npu_device.compat.v1.experimental.get_shape. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.experimental import get_shape

sys.modules[__name__] = get_shape
