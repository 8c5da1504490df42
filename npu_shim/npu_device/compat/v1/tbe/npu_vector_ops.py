"""The vendor's npu_device.compat.v1.tbe.npu_vector_ops. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.tbe import npu_vector_ops

sys.modules[__name__] = npu_vector_ops
