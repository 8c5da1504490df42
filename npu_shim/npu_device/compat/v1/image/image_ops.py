"""The vendor's npu_device.compat.v1.image.image_ops. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.image import image_ops

sys.modules[__name__] = image_ops
