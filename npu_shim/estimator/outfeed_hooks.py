"""Hooks that read the channels of npu_shim.ops.outfeed in a thread on the host."""

from __future__ import annotations

import threading
from typing import Sequence, TextIO

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Fetches, Operation, Queue, Session, Value
from npu_shim.ops.outfeed import LOG_CHANNEL, find_channel, outfeed_dequeue_op
from npu_shim.ops.system import shutdown_system

tf = tf_api.tf


class _ReadingHook(tf_api.SessionRunHook):
    """A hook that runs an op in a thread until its channel is closed and empty. Its begin() calls _set_input()."""

    _close: Operation | None = None
    _thread: threading.Thread | None = None

    def _set_fetches(self, fetches: Fetches, queue: Queue | None) -> None:
        """Set the op or tensors to run, and the channel; None if the graph never writes to it."""
        self._fetches = fetches
        self._close = None if queue is None else queue.close()

    def after_create_session(self, session: Session, coord: object) -> None:
        """Start the thread, once per session."""
        if self._close is not None:
            self._thread = threading.Thread(target=self._read_until_closed, args=(session,), daemon=True)
            self._thread.start()

    def end(self, session: Session) -> None:
        """Close the channel and wait until all its values are used."""
        if self._thread is not None:
            session.run(self._close)
            self._thread.join()

    def _read_until_closed(self, session: Session) -> None:
        while True:
            try:
                values = session.run(self._fetches)
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                return  # the channel or the session is closed
            self._use_values(values)

    def _use_values(self, values: Sequence[Value]) -> None:
        """Use the values of a run."""


class NPULogOutfeedSessionHook(_ReadingHook):
    """Write the values of the channel ``_npu_log`` to a stream, one line for each string.

    Args:
        output_stream: a file, such as sys.stderr.
    """

    def __init__(self, output_stream: TextIO) -> None:
        self._stream = output_stream

    def begin(self) -> None:
        """Create the op that reads the channel."""
        queue = find_channel(LOG_CHANNEL)
        texts = None if queue is None else outfeed_dequeue_op(LOG_CHANNEL, queue.dtypes, [None] * len(queue.dtypes))
        self._set_fetches(texts, queue)

    def _use_values(self, values: Sequence[Value]) -> None:
        for value in values:
            for text in getattr(value, "flat", [value]):
                self._stream.write(tf.compat.as_str(text) + "\n" if isinstance(text, bytes) else f"{text}\n")
        self._stream.flush()


class NPUInfeedOutfeedSessionHook(_ReadingHook):
    """Run ops that read a channel in a thread, until the channel is empty.

    Args:
        dequeue_ops: ops that use the outfeed_dequeue_op of the channel.
        channel_name: of the channel.
    Raises:
        ValueError: if the graph has no such channel.
    """

    def __init__(self, dequeue_ops: Fetches, channel_name: str) -> None:
        self._ops, self._name = dequeue_ops, channel_name

    def begin(self) -> None:
        """Look up the channel."""
        queue = find_channel(self._name)
        if queue is None:
            raise ValueError(
                f"channel_name={self._name!r}: nothing is put on this channel. Call npu_ops.outfeed_enqueue_op first."
            )
        self._set_fetches(self._ops, queue)


class NPUShutDownHook(tf_api.SessionRunHook):
    """Release the NPU when the session ends. On the CPU there is nothing to release.

    Args:
        scaffold: unused, as in the vendor's class.
    """

    def __init__(self, scaffold: object = None) -> None:
        self._op: Operation | None = None

    def begin(self) -> None:
        """Create the op that releases the NPU."""
        self._op = shutdown_system()

    def end(self, session: Session) -> None:
        """Release the NPU."""
        session.run(self._op)
