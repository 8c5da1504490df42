"""npu_shim.distributed.ranktable."""
