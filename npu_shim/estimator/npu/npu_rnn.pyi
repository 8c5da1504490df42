"""The vendor's npu_bridge.estimator.npu.npu_rnn. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.rnn import npu_dynamic_rnn

__all__ = ["npu_dynamic_rnn"]
