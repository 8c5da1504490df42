"""convert_tf2npu.syntax.py37."""
