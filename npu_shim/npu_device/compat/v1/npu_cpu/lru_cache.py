"""The vendor's npu_device.compat.v1.npu_cpu.lru_cache. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.npu_cpu import lru_cache

sys.modules[__name__] = lru_cache
