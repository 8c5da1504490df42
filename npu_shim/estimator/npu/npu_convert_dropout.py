"""The vendor's npu_bridge.estimator.npu.npu_convert_dropout. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.keras_dropout import dropout_call, switch_keras_dropout

__all__ = ["dropout_call", "switch_keras_dropout"]

switch_keras_dropout()
