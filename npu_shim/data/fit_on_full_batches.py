"""Train Keras on the full batches of arrays and images."""

from __future__ import annotations

from npu_shim._tensorflow import keras_arrays, tf_api
from npu_shim._tensorflow.keras_arrays import ArrayBatches
from npu_shim.data.reading_call import current_reading_call


def full_batches() -> int:
    """Return a value for ``shuffle`` with which Keras' ``fit`` trains on full batches only.

    It shuffles the rows, and each epoch leaves out others, fewer than a batch. So the NPU compiles one graph::

        model.fit(x, y, batch_size=32, epochs=5, shuffle=npu_shim.data.full_batches())
        model.evaluate(x, y)  # all rows

    It serves arrays, and from TensorFlow 2 on the iterators of ``ImageDataGenerator`` that shuffle. For datasets,
    generators and other objects of ``keras.utils.Sequence`` it is ``shuffle=True``. The share of ``validation_split``
    and other data for validation keep all rows. If there are fewer rows than one batch, or ``steps_per_epoch`` counts
    on the partial batch, ``fit`` trains on all rows and logs why. ``npu_shim.uninstall()`` ends it.

    Returns:
        A true value.
    """
    from npu_shim._tensorflow import keras_image_batches  # loads Keras

    drops = _Watch().drops
    keras_arrays.patch_batches_of_arrays(drops)
    keras_image_batches.patch_batches_of_images(drops)
    return _FullBatches(True)


class _FullBatches(int):
    """The argument of fit."""


class _Watch:
    """Decide on the partial batches of arrays, and log each call of fit once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def drops(self, batches: ArrayBatches) -> bool:
        """Return True if the last partial batch is dropped."""
        if not isinstance(batches.shuffle, _FullBatches) or batches.rows % batches.size == 0:
            return False
        kept = batches.obstacle
        if batches.steps is not None:
            kept = f"steps_per_epoch={batches.steps:,} counts its batches"
        elif batches.rows < batches.size:
            kept = f"it has {batches.rows:,} rows, fewer than a batch of {batches.size:,}"
        if kept:
            self._log_once(f"trains on all rows, also in a partial batch, because {kept}.", True)
            return False
        note_dropped(batches.rows, batches.size)
        rest = batches.rows % batches.size
        self._log_once(f"leaves out {rest:,} of {batches.rows:,} rows in each epoch, others in each.", False)
        return True

    def _log_once(self, text: str, is_kept: bool) -> None:
        call = current_reading_call()
        text = f"npu_shim: {'fit' if call is None else call} {text}"
        if text not in self._reported:
            self._reported.add(text)
            (tf_api.logging.warning if is_kept else tf_api.logging.info)("%s", text)


def note_dropped(rows: int, size: int) -> None:
    """Take note that a fit drops its last partial batch. Recordings replace it."""
