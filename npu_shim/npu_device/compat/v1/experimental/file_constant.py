"""The vendor's npu_device.compat.v1.experimental.file_constant. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.experimental import file_constant

sys.modules[__name__] = file_constant
