"""The callbacks of ``npu_shim.horovod.keras``."""

from __future__ import annotations

from npu_shim.horovod._keras import callbacks as _callbacks
from npu_shim.horovod._keras.callbacks import *  # noqa: F403


class BestModelCheckpoint(_callbacks.BestModelCheckpoint):  # type: ignore[no-redef]
    """tf.keras.callbacks.ModelCheckpoint that keeps the best model; set its ``filepath`` before training.

    Args:
        monitor, verbose, mode, save_freq: as for tf.keras.callbacks.ModelCheckpoint.
    """

    def __init__(
        self, monitor: str = "val_loss", verbose: int = 0, mode: str = "auto", save_freq: str | int = "epoch"
    ) -> None:
        super().__init__(monitor, verbose, False, mode, save_freq)


__all__ = _callbacks.__all__
