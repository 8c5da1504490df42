"""convert_tf2npu.rules.restriction."""
