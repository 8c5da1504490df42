"""convert_tf2npu.rules.unsupported."""
