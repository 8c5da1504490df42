"""convert_tf2npu.rules.estimator."""
