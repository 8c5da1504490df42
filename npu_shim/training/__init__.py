"""npu_shim.training."""
