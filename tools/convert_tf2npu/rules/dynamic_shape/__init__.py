"""convert_tf2npu.rules.dynamic_shape."""
