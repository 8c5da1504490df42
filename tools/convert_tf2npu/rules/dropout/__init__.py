"""convert_tf2npu.rules.dropout."""
