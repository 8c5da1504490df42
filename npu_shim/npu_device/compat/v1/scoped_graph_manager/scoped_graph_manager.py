"""The vendor's npu_device.compat.v1.scoped_graph_manager.scoped_graph_manager. Generated; do not edit."""

from __future__ import annotations

import sys

from npu_shim.scoped_graph_manager import scoped_graph_manager

sys.modules[__name__] = scoped_graph_manager
