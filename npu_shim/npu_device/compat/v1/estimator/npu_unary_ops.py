"""The vendor's npu_device.compat.v1.estimator.npu_unary_ops. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.estimator import npu_unary_ops

sys.modules[__name__] = npu_unary_ops
