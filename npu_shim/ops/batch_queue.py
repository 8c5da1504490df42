"""Queues of batches in this process, by name or number.

Like TensorFlow's queues they block: batch_enqueue while the queue is full, dequeue while it is empty.
"""

from __future__ import annotations

import queue
import threading
from typing import Sequence

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import DType, Tensor

_queues: dict[str, queue.Queue[np.ndarray]] = {}  # by name, or by number without one
_lock = threading.Lock()
_PADS = ("REPLICATE", "ZERO")


def batch_enqueue(
    x: Tensor, queue_id: Tensor = 0, batch_size: int = 8, queue_name: str = "", queue_depth: int = 100,
    pad_mode: str = "REPLICATE", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Split x into batches, and put them into a queue.

    Args:
        x: [n, ...], numbers.
        queue_id: uint32 scalar, the queue if queue_name is empty.
        batch_size: the rows of a batch.
        queue_name: the queue.
        queue_depth: the most batches in it; the first call decides.
        pad_mode: what fills the last batch up: "REPLICATE" for copies of the last row, "ZERO" for zeros.
        name: name of the ops.
    Returns:
        int32 scalar, the number of batches.
    Raises:
        ValueError: another pad_mode, or a batch_size or queue_depth below 1.
    """
    if pad_mode not in _PADS or batch_size < 1 or queue_depth < 1:
        raise ValueError(
            f"batch_enqueue: batch_size={batch_size!r}, queue_depth={queue_depth!r} and pad_mode={pad_mode!r} are not "
            "allowed. Sizes must be 1 or more, and pad_mode 'REPLICATE' or 'ZERO'."
        )

    def put(rows: np.ndarray, number: np.ndarray) -> np.int32:
        target = _queue_by_name(queue_name, number, queue_depth)
        missing = -len(rows) % batch_size
        last = rows[-1:] if pad_mode == "REPLICATE" else np.zeros_like(rows[:1])
        fill = np.repeat(last, missing, 0)
        batches = np.split(np.concatenate([rows, fill]), (len(rows) + missing) // batch_size) if len(rows) else []
        for batch in batches:
            target.put(batch)
        return np.int32(len(batches))

    with tf.name_scope(name or "batch_enqueue"):
        count = numpy_function(put, [x, tf.cast(queue_id, tf.int64)], tf.int32)
        count.set_shape([])
        return count


def dequeue_operator(
    queue_id: Tensor,
    output_shape: Sequence[int],
    output_type: DType = tf.uint8,
    queue_name: str = "",
    name: str | None = None,
) -> Tensor:
    """Take the first batch from a queue.

    Args:
        queue_id: uint32 scalar, the queue if queue_name is empty.
        output_shape: the shape of a batch.
        output_type: the type of a batch.
        queue_name: the queue.
        name: name of the ops.
    Returns:
        A tensor of that shape and type.
    Raises:
        InvalidArgumentError: when it runs, if the batch has another shape or type.
    """
    dtype = tf.as_dtype(output_type)

    def get(number: np.ndarray) -> np.ndarray:
        batch = _queue_by_name(queue_name, number, None).get()
        if batch.shape != tuple(output_shape) or batch.dtype != dtype.as_numpy_dtype:
            raise ValueError(
                f"dequeue: output_shape={list(output_shape)} and output_type={dtype.name} do not fit the batch, which "
                f"is {batch.dtype.name} {list(batch.shape)}. Pass those of the batch."
            )
        return batch

    with tf.name_scope(name or "dequeue"):
        batch = numpy_function(get, [tf.cast(queue_id, tf.int64)], dtype)
        batch.set_shape(list(output_shape))
        return batch


def dequeue(queue_id: Tensor, output_type: DType, output_shape: Sequence[int], queue_name: str = "") -> Tensor:
    """Take the first batch from a queue. Arguments and result as for dequeue_operator."""
    return dequeue_operator(queue_id, output_shape, output_type, queue_name)


def _queue_by_name(name: str, number: np.ndarray, depth: int | None) -> queue.Queue[np.ndarray]:
    """Return a queue; one that dequeue makes has room for a batch until batch_enqueue sets its depth."""
    key = name or str(int(number))
    with _lock:
        batches = _queues.setdefault(key, queue.Queue(depth or 0))
        if depth is not None and batches.maxsize == 0:
            batches.maxsize = depth
        return batches
