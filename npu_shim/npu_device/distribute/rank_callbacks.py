"""Keras callbacks of one rank: one rank writes, and all decide on the same metrics."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import KerasCallback, Logs, Structure
from npu_shim.npu_device.distribute.hccl import all_reduce
from npu_shim.npu_device.distribute.rank_metrics import Figures, global_logs, metric_figures

_KERAS, _BATCH_ENDS = ("keras.", "tensorflow."), ("on_train_batch_end", "on_batch_end")
_WRITERS = ("ModelCheckpoint", "TensorBoard", "CSVLogger", "RemoteMonitor")


def callbacks_for_rank(callbacks: Structure, rank: int) -> list[KerasCallback]:
    """Return the callbacks of fit() for a rank.

    Args:
        callbacks: a callback, a list or tuple of callbacks, or None.
        rank: the rank. On ranks other than 0 callbacks that write files are left out, or only read.
    Returns:
        A list that begins with the metrics of all ranks, and ends with the agreement to stop.
    """
    own = [
        callback
        for callback in callbacks_as_list(callbacks)
        if rank == 0 or not _is_instance_by_name(callback, _WRITERS)
    ]
    for callback in own:
        if rank != 0 and _is_instance_by_name(callback, ("BackupAndRestore",)):
            _disable_writing(callback)
    return [MetricsOfAll(), *own, Agreement()]


def need_batch_metrics(callbacks: Structure) -> bool:
    """Return True if a callback may decide on the metrics of a batch, which then are those of all ranks."""
    return any(
        _is_instance_by_name(callback, ("TerminateOnNaN", "LambdaCallback"))
        or not type(callback).__module__.startswith(_KERAS)
        and any(getattr(type(callback), name) is not getattr(tf.keras.callbacks.Callback, name) for name in _BATCH_ENDS)
        for callback in callbacks_as_list(callbacks)
    )


def callbacks_as_list(callbacks: Structure) -> list[KerasCallback]:
    """Return the callbacks of fit(), which are one, a list or tuple of them, or None."""
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []


def _is_instance_by_name(callback: object, names: Sequence[str]) -> bool:
    homes = (tf.keras.callbacks, getattr(tf.keras.callbacks, "experimental", None))
    classes = tuple(getattr(home, name) for home in homes for name in names if hasattr(home, name))
    return isinstance(callback, classes)


def _disable_writing(callback: KerasCallback) -> None:
    """Let BackupAndRestore restore a model, and leave saving and removing the backup to rank 0."""
    for name in ("on_epoch_end", "on_train_batch_end", "on_train_end"):
        setattr(callback, name, lambda *args, **kwargs: None)


class MetricsOfAll(tf.keras.callbacks.Callback):
    """Replace each metric of an epoch by that of the rows of all ranks, and other values by their mean."""

    def __init__(self) -> None:
        super().__init__()
        self._figures: Figures | None = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Forget the metrics of the last epoch."""
        self._figures = None

    def on_test_begin(self, logs: Logs = None) -> None:
        """Read the metrics of training before validation resets them."""
        self._read_figures()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Change the logs in place."""
        known = self._read_figures()
        if logs:
            logs.update((name, float(value)) for name, value in global_logs(logs, known).items())

    def _read_figures(self) -> Figures:
        if self._figures is None:
            self._figures = metric_figures(self.model)
        return self._figures


class Agreement(tf.keras.callbacks.Callback):
    """Stop the training on all ranks if one stops, and end it on all together."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Stop if any rank stops."""
        stops = all_reduce(tf.constant(float(bool(self.model.stop_training))), "max")
        self.model.stop_training = bool(stops.numpy())

    def on_train_end(self, logs: Logs = None) -> None:
        """Wait for the other ranks, so that the files of rank 0 are complete."""
        all_reduce(tf.constant(0.0))
