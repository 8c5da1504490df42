"""convert_tf2npu.files."""
