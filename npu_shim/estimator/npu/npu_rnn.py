"""The vendor's npu_bridge.estimator.npu.npu_rnn. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.ops.rnn import npu_dynamic_rnn

__all__ = [
    "npu_dynamic_rnn",
]
