"""convert_tf2npu.report.html."""
