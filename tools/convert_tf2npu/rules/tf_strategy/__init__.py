"""convert_tf2npu.rules.tf_strategy."""
