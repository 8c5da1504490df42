"""The vendor's npu_device.compat.v1.npu_cpu.npu_cpu_ops. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.npu_cpu import npu_cpu_ops

sys.modules[__name__] = npu_cpu_ops
