"""convert_tf2npu.engine."""
