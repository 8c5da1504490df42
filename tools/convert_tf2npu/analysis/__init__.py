"""convert_tf2npu.analysis."""
