"""convert_tf2npu.rewrite."""
