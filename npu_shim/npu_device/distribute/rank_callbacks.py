"""Keras callbacks of one rank: one rank writes, and all decide on the same metrics."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from npu_shim._tf import tf
from npu_shim.npu_device.distribute.hccl import all_reduce

_WRITERS = ("ModelCheckpoint", "TensorBoard", "CSVLogger", "RemoteMonitor")


def for_this_rank(callbacks: Any, rank: int) -> list[Any]:
    """Return the callbacks of fit() for a rank.

    Args:
        callbacks: a callback, a list or tuple of callbacks, or None.
        rank: the rank. On ranks other than 0 callbacks that write files are left out, or only read.
    Returns:
        A list that begins with the average of the metrics, and ends with the agreement to stop.
    """
    given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
    own = [callback for callback in given if rank == 0 or not _is(callback, _WRITERS)]
    for callback in own:
        if rank != 0 and _is(callback, ("BackupAndRestore",)):
            _read_only(callback)
    return [MetricAverage(any(_is(callback, ("TerminateOnNaN",)) for callback in given)), *own, Agreement()]


def _is(callback: object, names: Sequence[str]) -> bool:
    homes = (tf.keras.callbacks, getattr(tf.keras.callbacks, "experimental", None))
    classes = tuple(getattr(home, name) for home in homes for name in names if hasattr(home, name))
    return isinstance(callback, classes)


def _read_only(callback: Any) -> None:
    """Let BackupAndRestore restore a model, and leave saving and removing the backup to rank 0."""
    for name in ("on_epoch_end", "on_train_batch_end", "on_train_end"):
        setattr(callback, name, lambda *args, **kwargs: None)


class MetricAverage(tf.keras.callbacks.Callback):
    """Replace each metric of an epoch by its mean over the ranks.

    Args:
        every_batch: True to do so after each batch, too.
    """

    def __init__(self, every_batch: bool = False) -> None:
        super().__init__()
        self._every_batch = every_batch

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Average the metrics in place, in the order of their names."""
        numbers = {name: value for name, value in sorted((logs or {}).items()) if np.ndim(value) == 0}
        if numbers:
            mean = all_reduce(tf.constant([float(value) for value in numbers.values()], tf.float64))
            logs.update(zip(numbers, map(float, mean.numpy())))  # type: ignore[union-attr]

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Average the metrics of a batch for callbacks that decide on them."""
        if self._every_batch:
            self.on_epoch_end(batch, logs)


class Agreement(tf.keras.callbacks.Callback):
    """Stop the training on all ranks if one stops, and end it on all together."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Stop if any rank stops."""
        stops = all_reduce(tf.constant(float(bool(self.model.stop_training))), "max")
        self.model.stop_training = bool(stops.numpy())

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Wait for the other ranks, so that the files of rank 0 are complete."""
        all_reduce(tf.constant(0.0))
