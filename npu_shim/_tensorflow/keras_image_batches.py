"""Batches that Keras' fit takes from the iterators of ``ImageDataGenerator``. Importing it loads Keras."""

from __future__ import annotations

import functools
import importlib

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import patches
from npu_shim._tensorflow.keras_arrays import ArrayBatches, Drops, with_shapes
from npu_shim._tensorflow.types import DataAdapter, Dataset, Function, Structure, Value

_ITERATOR = tf.keras.preprocessing.image.Iterator
_SETTINGS = ("workers", "use_multiprocessing", "max_queue_size")  # of an iterator of Keras 3


def patch_batches_of_images(drops: Drops) -> None:
    """Let Keras leave out the last partial batch of an iterator of images where a function asks for it.

    Args:
        drops: is asked for each iterator that Keras reads.
    """
    if tf.__version__.startswith("1."):
        return
    if hasattr(tf.keras, "Operation"):  # Keras 3
        module = importlib.import_module("keras.src.trainers.data_adapters.py_dataset_adapter")
        owner = module.PyDatasetAdapter
    else:
        package = tf.keras.Model.__module__.rpartition(".")[0]
        owner = importlib.import_module(f"{package}.data_adapter").KerasSequenceAdapter
    patches.replace_attribute(owner, "__init__", functools.partial(_wrap_adapter, drops))


class _FullBatches(tf.keras.utils.Sequence):
    """The full batches of an iterator, in its order."""

    def __init__(self, batches: Value) -> None:
        super().__init__(**{name: getattr(batches, name) for name in _SETTINGS if hasattr(batches, name)})
        self._batches = batches
        self._shapes: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return self._batches.n // self._batches.batch_size

    def __getitem__(self, index: int) -> Structure:
        batch = self._batches[index]
        self._shapes = [np.shape(part) for part in tf.nest.flatten(batch)]
        return batch

    def on_epoch_end(self) -> None:
        """Let the iterator shuffle its rows."""
        self._batches.on_epoch_end()

    def with_shapes(self, dataset: Dataset) -> Dataset:
        """Return the dataset that Keras makes of this, which has begun to read it, with the shapes of the batches."""
        return with_shapes(dataset, self._shapes)


def _wrap_adapter(drops: Drops, original: Function) -> Function:
    @functools.wraps(original)
    def init(adapter: DataAdapter, x: Value, *args: object, **kwargs: Value) -> None:
        if not isinstance(x, _ITERATOR) or not drops(_batches_of_iterator(x, **kwargs)):
            original(adapter, x, *args, **kwargs)
            return
        batches = _FullBatches(x)
        original(adapter, batches, *args, **kwargs)
        if hasattr(adapter, "get_tf_dataset"):  # Keras 3
            make_dataset = adapter.get_tf_dataset
            adapter.get_tf_dataset = lambda: batches.with_shapes(make_dataset())
        else:
            adapter._dataset = batches.with_shapes(adapter._dataset)

    return init


def _batches_of_iterator(batches: Value, shuffle: Value = False, steps: int | None = None, **_: object) -> ArrayBatches:
    """Return what is known of the batches of an iterator. An epoch may have fewer steps than batches."""
    if steps is not None and steps <= batches.n // batches.batch_size:
        steps = None
    obstacle = "" if batches.shuffle else "its iterator has shuffle=False, and each epoch would leave out the same rows"
    return ArrayBatches(shuffle, batches.n, batches.batch_size, steps, obstacle)
