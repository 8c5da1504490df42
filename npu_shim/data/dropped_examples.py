"""Counts, while training runs, what a static batch dimension drops of input whose size nobody knows before."""

from __future__ import annotations

import atexit
import threading
from typing import Any

import numpy as np

from npu_shim import _tf

tf = _tf.tf
_COLLECTION = "npu_shim/dropped"


class Dropped:
    """The examples of the smaller batches that were left out.

    Args:
        size: examples of a full batch.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()  # tf.data calls from its own threads
        self._batches = self._examples = 0
        _tf.v1.add_to_collection(_COLLECTION, self)
        atexit.register(self.tell)

    def unless_full(self, full: Any, count: Any) -> Any:
        """``full``, a bool scalar; where it is False, ``count`` examples have been dropped."""
        return _tf.v1.cond(full, lambda: tf.constant(True), lambda: self._counted(count))

    def _counted(self, count: Any) -> Any:
        def add(examples: Any) -> Any:
            with self._lock:
                self._batches += 1
                self._examples += int(examples)
            return np.bool_(False)

        counted = _tf.v1.py_func(add, [count], tf.bool, stateful=True)
        counted.set_shape([])
        return counted

    def tell(self) -> None:
        """One log line with what was dropped since it was told last."""
        with self._lock:
            batches, examples, self._batches, self._examples = self._batches, self._examples, 0, 0
        if batches:
            _tf.logging.info(
                "npu_shim: dropped %s example%s in %s smaller batch%s of the training input (batch size %d).",
                f"{examples:,}",
                "" if examples == 1 else "s",
                f"{batches:,}",
                "" if batches == 1 else "es",
                self._size,
            )


class DroppedHook(_tf.SessionRunHook):
    """Tells at the end of training what was dropped."""

    def begin(self) -> None:
        """Looks up who counts in this graph."""
        self._counts: list[Dropped] = _tf.v1.get_collection(_COLLECTION)

    def end(self, session: Any) -> None:
        """Tells it."""
        for one in self._counts:
            one.tell()
