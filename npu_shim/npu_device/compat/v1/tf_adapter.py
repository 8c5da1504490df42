"""The vendor's npu_device.compat.v1.tf_adapter. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim import tf_adapter

sys.modules[__name__] = tf_adapter
