"""Static shapes for input pipelines."""
from __future__ import annotations

from npu_shim.data.static_batch import enforce_static_batch

__all__ = ["enforce_static_batch"]
