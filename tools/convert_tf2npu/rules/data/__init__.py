"""convert_tf2npu.rules.data."""
