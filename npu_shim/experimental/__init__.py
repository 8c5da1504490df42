"""The vendor's npu_bridge.experimental. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations
