"""The vendor's npu_device.compat.v1.experimental.hccl. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.experimental import hccl

sys.modules[__name__] = hccl
