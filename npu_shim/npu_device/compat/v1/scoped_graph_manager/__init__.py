"""The vendor's npu_device.compat.v1.scoped_graph_manager. Generated; do not edit."""
