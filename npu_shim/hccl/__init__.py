"""The vendor's npu_bridge.hccl. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations
