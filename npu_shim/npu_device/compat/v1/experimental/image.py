"""The vendor's npu_device.compat.v1.experimental.image. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.experimental import image

sys.modules[__name__] = image
