"""Count, during training, the examples that a static batch dimension drops from input of unknown size."""

from __future__ import annotations

import atexit
import threading

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Session, Tensor

tf = tf_api.tf
_COLLECTION = "npu_shim/dropped"


class DroppedExamples:
    """A counter of the examples in dropped partial batches.

    Args:
        size: examples in a full batch.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()  # tf.data calls from its own threads
        self._batches = self._examples = 0
        tf_api.v1.add_to_collection(_COLLECTION, self)
        atexit.register(self.report)

    def count_unless_full(self, full: Tensor, count: Tensor) -> Tensor:
        """Return ``full``, a bool scalar; if it is False at run time, count ``count`` dropped examples."""
        return tf_api.v1.cond(full, lambda: tf.constant(True), lambda: self._add_op(count))

    def _add_op(self, count: Tensor) -> Tensor:
        def add(examples: np.ndarray) -> np.bool_:
            with self._lock:
                self._batches += 1
                self._examples += int(examples)
            return np.bool_(False)

        counted = tf_api.v1.py_func(add, [count], tf.bool, stateful=True)
        counted.set_shape([])
        return counted

    def report(self) -> None:
        """Log the number of examples dropped since the last report, in one line."""
        with self._lock:
            batches, examples, self._batches, self._examples = self._batches, self._examples, 0, 0
        if batches:
            tf_api.logging.info(
                f"npu_shim: dropped {examples:,} example{'' if examples == 1 else 's'} in {batches:,} partial "
                f"batch{'' if batches == 1 else 'es'} of the training input (batch size {self._size})."
            )


class DroppedExamplesHook(tf_api.SessionRunHook):
    """Report the dropped examples at the end of training."""

    def begin(self) -> None:
        """Find the counters of this graph."""
        self._counters: list[DroppedExamples] = tf_api.v1.get_collection(_COLLECTION)

    def end(self, session: Session) -> None:
        """Report."""
        for counter in self._counters:
            counter.report()
