"""The vendor's npu_device.compat.v1._api.experimental. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim._api import experimental

sys.modules[__name__] = experimental
