"""Static shapes for input pipelines: drop, pad or count partial batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._host.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from npu_shim.data.buckets import bucket_by_length
    from npu_shim.data.dropped_in_training import drop_in_training
    from npu_shim.data.fit_on_full_batches import full_batches
    from npu_shim.data.fixed_shapes import (
        Distinct,
        Selection,
        masked_select,
        masked_where,
        sequence_mask_like,
        top_k_mask,
        unique_padded,
    )
    from npu_shim.data.masked import masked_count, masked_max, masked_mean, masked_min, masked_rows, masked_sum
    from npu_shim.data.numpy_batches import PaddedBatch, padded_batches
    from npu_shim.data.padded_lengths import fixed_lengths
    from npu_shim.data.padding import pad_last_batch
    from npu_shim.data.remainder import Remainder, count_remainder
    from npu_shim.data.shape_watch import ShapeWatch, watch_shapes
    from npu_shim.data.static_batch import enforce_static_batch
else:
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "npu_shim.data.numpy_batches": "PaddedBatch padded_batches",
            "npu_shim.data.buckets": "bucket_by_length",
            "npu_shim.data.dropped_in_training": "drop_in_training",
            "npu_shim.data.padded_lengths": "fixed_lengths",
            "npu_shim.data.fixed_shapes": (
                "Distinct Selection masked_select masked_where sequence_mask_like top_k_mask unique_padded"
            ),
            "npu_shim.data.fit_on_full_batches": "full_batches",
            "npu_shim.data.masked": "masked_count masked_max masked_mean masked_min masked_rows masked_sum",
            "npu_shim.data.padding": "pad_last_batch",
            "npu_shim.data.remainder": "Remainder count_remainder",
            "npu_shim.data.shape_watch": "ShapeWatch watch_shapes",
            "npu_shim.data.static_batch": "enforce_static_batch",
        },
    )

__all__ = [
    "Distinct",
    "PaddedBatch",
    "Remainder",
    "Selection",
    "ShapeWatch",
    "bucket_by_length",
    "count_remainder",
    "drop_in_training",
    "enforce_static_batch",
    "fixed_lengths",
    "full_batches",
    "masked_count",
    "masked_max",
    "masked_mean",
    "masked_min",
    "masked_rows",
    "masked_select",
    "masked_sum",
    "masked_where",
    "pad_last_batch",
    "padded_batches",
    "sequence_mask_like",
    "top_k_mask",
    "unique_padded",
    "watch_shapes",
]
