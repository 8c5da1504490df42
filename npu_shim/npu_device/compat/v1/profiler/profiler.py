"""The vendor's npu_device.compat.v1.profiler.profiler. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.profiler import profiler

sys.modules[__name__] = profiler
