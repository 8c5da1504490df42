"""Static shapes for input pipelines: drop, pad or count what does not fill a batch."""
from __future__ import annotations

from npu_shim.data.arrays import PaddedBatch, padded_batches
from npu_shim.data.buckets import bucket_by_length
from npu_shim.data.fixed_shapes import Distinct, Selection, masked_select, masked_where, top_k_mask, unique_padded
from npu_shim.data.padding import pad_last_batch
from npu_shim.data.remainder import Remainder, count_remainder
from npu_shim.data.shape_watch import ShapeWatch, watch_shapes
from npu_shim.data.static_batch import enforce_static_batch

__all__ = ["Distinct", "PaddedBatch", "Remainder", "Selection", "ShapeWatch", "bucket_by_length", "count_remainder",
           "enforce_static_batch", "masked_select", "masked_where", "pad_last_batch", "padded_batches", "top_k_mask",
           "unique_padded", "watch_shapes"]
