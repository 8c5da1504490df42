"""The vendor's npu_bridge.estimator.npu. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations
