"""convert_tf2npu.rules.keras."""
