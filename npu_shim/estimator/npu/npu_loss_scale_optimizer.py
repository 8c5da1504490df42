"""The vendor's npu_bridge.estimator.npu.npu_loss_scale_optimizer. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim._vendor_paths.lazy import vendor_names as _vendor_names

__getattr__, __dir__ = _vendor_names(__name__)
