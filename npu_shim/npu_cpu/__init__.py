"""The vendor's npu_bridge.npu_cpu. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations
