"""The vendor's npu_device.compat.v1.estimator.npu.keras_to_npu. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.estimator.npu import keras_to_npu

sys.modules[__name__] = keras_to_npu
