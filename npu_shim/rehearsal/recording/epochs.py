"""Let the epochs of Keras' fit read their data in the same order in all versions of Keras.

A data set that shuffles draws an order for each iterator, also for one that is not read. Keras 2 makes such an iterator
before the first epoch, and Keras 3 one after each. Keras 3 makes an iterator for each epoch of arrays. With a seed, it
begins with the same numbers each time, and all epochs have one order. In Keras 2 one iterator has all epochs.
"""

from __future__ import annotations

import weakref

import tensorflow as tf

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.types import DataAdapter, Dataset, Function, Result
from npu_shim.rehearsal.recording import methods


def avoid_idle_iterators() -> None:
    """Let Keras make no iterator of a data set that it does not read."""
    fresh: weakref.WeakSet[DataAdapter] = weakref.WeakSet()  # adapters that have an iterator for the first epoch

    def enumerate_epochs(original: Function, handler: DataAdapter) -> Result:
        fresh.add(tf_keras.data_adapter_of(handler))
        return original(handler)

    def should_recreate(original: Function, adapter: DataAdapter, *args: object) -> Result:
        if adapter in fresh:
            fresh.discard(adapter)
            return False
        return original(adapter, *args)

    def get_iterator(original: Function, epochs: DataAdapter) -> Result:
        return () if tf_keras.has_all_batches(epochs) else original(epochs)

    handler, adapter, iterator = tf_keras.epoch_classes()
    if iterator is not None:
        methods.wrap_methods(iterator, ("_get_iterator",), get_iterator)
    if handler is not None and adapter is not None:
        methods.wrap_methods(handler, ("enumerate_epochs",), enumerate_epochs)
        methods.wrap_methods(adapter, ("should_recreate_iterator",), should_recreate)


def is_order_of_keras_3(function: Function) -> bool:
    """Return True for the function with which Keras 3 draws the order of arrays for an epoch of fit."""
    module = getattr(function, "__module__", None) or ""
    return module.endswith("trainers.data_adapters.array_data_adapter") and function.__name__ == "permutation"


def continuing_orders(original: Function, dataset: Dataset, function: Function) -> Dataset:
    """Return the data set of the orders of epochs, which go on with each of its iterators.

    Args:
        original: Dataset.map.
        dataset, function: its arguments.
    """
    orders = iter(original(dataset.repeat(), function))
    shape = orders.element_spec.shape
    return original(
        dataset, lambda _: tf.ensure_shape(tf.numpy_function(lambda: next(orders).numpy(), [], tf.int64), shape)
    )
