"""convert_tf2npu.cli."""
