"""The vendor's npu_device.compat.v1.hccl.hccl_ops. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.hccl import hccl_ops

sys.modules[__name__] = hccl_ops
