"""Write scalars to an event file for TensorBoard."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import EventWriter


_FLUSH_S = 2


class Events:
    """The event file of this process, which is made with the first value.

    Args:
        folder: in which it is.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._writer: EventWriter = None

    def write(self, tag: str, value: float, step: int) -> None:
        """Write a scalar. A forked child of the process writes nothing."""
        if os.getpid() != self._pid:
            return
        import tensorflow as tf

        v1 = tf.compat.v1
        if self._writer is None:
            with self._lock:
                if self._writer is None:
                    with tf.Graph().as_default():  # where TensorFlow 2 allows this writer
                        self._writer = v1.summary.FileWriter(self._folder, flush_secs=_FLUSH_S)
        summary = v1.Summary(value=[v1.Summary.Value(tag=tag, simple_value=value)])
        self._writer.add_event(v1.Event(wall_time=time.time(), step=step, summary=summary))

    def end(self) -> None:
        """Write what is left, and close the file."""
        if self._writer is not None and os.getpid() == self._pid:
            self._writer.close()
