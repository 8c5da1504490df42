"""convert_tf2npu.syntax."""
