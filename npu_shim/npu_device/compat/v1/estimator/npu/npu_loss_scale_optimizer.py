"""The vendor's npu_device.compat.v1.estimator.npu.npu_loss_scale_optimizer. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.estimator.npu import npu_loss_scale_optimizer

sys.modules[__name__] = npu_loss_scale_optimizer
