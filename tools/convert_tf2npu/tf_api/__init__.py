"""convert_tf2npu.tf_api."""
