"""The vendor's npu_bridge.scoped_graph_manager.scoped_graph_manager. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.context_managers import ScopedGraphManager

__all__ = ["ScopedGraphManager"]
