"""The event file of a process for TensorBoard, made with TensorFlow's own writer."""

from __future__ import annotations

import os
import threading
from typing import Mapping

from npu_shim._tensorflow.types import EventWriter
from npu_shim.rehearsal.recording.names import OWN_WRITER

_FLUSH_S = 2


class EventFile:
    """An event file, which is made with the first value.

    Before the script, TensorFlow would begin in eager mode for it. The script may switch eager mode off, and variables
    of branches would still be eager ones.

    Args:
        folder: of the file.
        suffix: ends its name.
    """

    def __init__(self, folder: str, suffix: str = "") -> None:
        self._folder, self._suffix = folder, suffix
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._writer: EventWriter = None

    def write_scalars(self, values: Mapping[str, float], step: int) -> None:
        """Write scalars by their tags. A forked child of the process writes nothing."""
        if os.getpid() != self._pid:
            return
        import tensorflow as tf

        v1 = tf.compat.v1
        with self._lock:
            if self._writer is None:
                with tf.Graph().as_default():  # where TensorFlow 2 allows this writer, which needs no graph
                    self._writer = v1.summary.FileWriter(
                        self._folder, flush_secs=_FLUSH_S, filename_suffix=self._suffix
                    )
                setattr(self._writer, OWN_WRITER, True)
        scalars = [v1.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._writer.add_summary(v1.Summary(value=scalars), step)

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._writer is not None and os.getpid() == self._pid:
            self._writer.close()
