"""The vendor's npu_bridge.scoped_graph_manager.scoped_graph_manager. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._first_use import first_use as _first_use

if TYPE_CHECKING:
    from npu_shim.ops.host_contexts import ScopedGraphManager
else:
    __getattr__, __dir__ = _first_use(__name__, {
        "npu_shim.ops.host_contexts": "ScopedGraphManager",
    })

__all__ = [
    "ScopedGraphManager",
]
