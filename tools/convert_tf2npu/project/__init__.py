"""convert_tf2npu.project."""
