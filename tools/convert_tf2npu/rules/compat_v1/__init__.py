"""convert_tf2npu.rules.compat_v1."""
