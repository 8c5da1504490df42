"""The vendor's npu_device.compat.v1.helper.helper. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.helper import helper

sys.modules[__name__] = helper
