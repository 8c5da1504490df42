"""convert_tf2npu.rules.session."""
