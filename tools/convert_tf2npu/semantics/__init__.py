"""convert_tf2npu.semantics."""
