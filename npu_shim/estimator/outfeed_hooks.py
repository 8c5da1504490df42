"""Hooks that serve the channels of npu_shim.ops.outfeed from a thread of the host."""

from __future__ import annotations

import threading
from typing import Any

from npu_shim import _device, _tf
from npu_shim.ops.outfeed import LOG_CHANNEL, existing_channel, outfeed_dequeue_op
from npu_shim.ops.system import shutdown_system

tf = _tf.tf


class _Reader:
    """Runs an op in a thread until its channel is closed and empty.

    Args:
        fetches: what to run.
        use: called with the values of each run.
        queue: the channel; None where nothing is ever put on it.
    """

    def __init__(self, fetches: Any, use: Any, queue: Any) -> None:
        self._fetches, self._use = fetches, use
        self._close = None if queue is None else queue.close()
        self._thread: threading.Thread | None = None

    def start(self, session: Any) -> None:
        """Begins; once for each session."""
        if self._close is None:
            return
        self._thread = threading.Thread(target=self._read, args=(session,), daemon=True)
        self._thread.start()

    def finish(self, session: Any) -> None:
        """Closes the channel and waits until what is on it has been used."""
        if self._thread is not None:
            session.run(self._close)
            self._thread.join()

    def _read(self, session: Any) -> None:
        while True:
            try:
                values = session.run(self._fetches)
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                return  # closed, or the session is
            self._use(values)


@_device.on_card("npu_bridge.estimator.npu.npu_hook")
class NPULogOutfeedSessionHook(_tf.SessionRunHook):
    """Writes what a graph puts on the channel ``_npu_log`` to a stream, a line for each text.

    Args:
        output_stream: a file, such as sys.stderr.
    """

    def __init__(self, output_stream: Any) -> None:
        self._stream = output_stream

    def begin(self) -> None:
        """Makes the op that reads the channel."""
        queue = existing_channel(LOG_CHANNEL)
        texts = None if queue is None else outfeed_dequeue_op(LOG_CHANNEL, queue.dtypes, [None] * len(queue.dtypes))
        self._reader = _Reader(texts, self._write, queue)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the thread."""
        self._reader.start(session)

    def end(self, session: Any) -> None:
        """Waits until all is written."""
        self._reader.finish(session)

    def _write(self, values: Any) -> None:
        for value in values:
            for text in getattr(value, "flat", [value]):
                self._stream.write(tf.compat.as_str(text) + "\n" if isinstance(text, bytes) else f"{text}\n")
        self._stream.flush()


@_device.on_card("npu_bridge.estimator.npu.npu_hook")
class NPUInfeedOutfeedSessionHook(_tf.SessionRunHook):
    """Runs ops that read a channel, in a thread, as long as there is something on it.

    Args:
        dequeue_ops: what to run; built on outfeed_dequeue_op of the channel.
        channel_name: of the channel.
    Raises:
        ValueError: the graph has no such channel.
    """

    def __init__(self, dequeue_ops: Any, channel_name: str) -> None:
        self._ops, self._name = dequeue_ops, channel_name

    def begin(self) -> None:
        """Looks the channel up."""
        queue = existing_channel(self._name)
        if queue is None:
            raise ValueError(
                f"channel_name={self._name!r}: nothing is put on this channel. Use npu_ops.outfeed_enqueue_op first."
            )
        self._reader = _Reader(self._ops, lambda values: None, queue)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the thread."""
        self._reader.start(session)

    def end(self, session: Any) -> None:
        """Waits until the channel is empty."""
        self._reader.finish(session)


class NPUShutDownHook(_tf.SessionRunHook):
    """Releases the card when the session ends; on the CPU there is nothing to release.

    Args:
        scaffold: not used, as with the vendor.
    """

    def __init__(self, scaffold: Any = None) -> None:
        self._op: Any = None

    def begin(self) -> None:
        """Makes the op that releases it."""
        self._op = shutdown_system()

    def end(self, session: Any) -> None:
        """Runs it."""
        session.run(self._op)
