"""The vendor's npu_bridge.estimator.npu.npu_dynamic_rnn. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.dynamic_rnn import (
    DYNAMIC_RNN_BIDIRECTION, DYNAMIC_RNN_REDIRECTIONAL, DYNAMIC_RNN_UNIDIRECTION, DynamicAUGRU, DynamicGRUV2,
    DynamicRNN,
)

__all__ = [
    "DYNAMIC_RNN_BIDIRECTION", "DYNAMIC_RNN_REDIRECTIONAL", "DYNAMIC_RNN_UNIDIRECTION", "DynamicAUGRU", "DynamicGRUV2",
    "DynamicRNN",
]
