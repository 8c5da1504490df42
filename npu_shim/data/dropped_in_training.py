"""Drop partial batches where a dataset trains, and keep them elsewhere."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_data, tf_graph, tf_keras
from npu_shim._tensorflow.types import Dataset, Value
from npu_shim.data import training_passes
from npu_shim.data.batching import check_dataset
from npu_shim.data.static_batch import enforce_static_batch

tf = tf_api.tf
_MARK = "npu_shim_drops_in_training"  # attribute of a dataset


def drop_in_training(dataset: Dataset) -> Dataset:
    """Drop partial batches of a dataset where it trains; evaluation, prediction and other code read all of it.

    For a dataset that feeds both, or a function that makes datasets for both::

        data = npu_shim.data.drop_in_training(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32))
        model.fit(data)       # full batches, as enforce_static_batch(data) has them
        model.evaluate(data)  # all examples
        for images, labels in data:  # full batches, if a Keras optimizer makes steps in this loop
            train_step(images, labels)

    It applies to Keras' ``fit``, to loops of eager code with TensorFlow 2, and to datasets that are made from it, as by
    ``map`` and ``prefetch``, too. A loop in a tf.function reads all examples. NPUEstimator does so for every dataset.
    ``npu_shim.uninstall()`` ends it.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
    Returns:
        The same dataset.
    Raises:
        TypeError: if dataset is not a tf.data.Dataset.
        ValueError: in ``fit``, if the dataset is known to have fewer examples than one batch.
    """
    check_dataset(dataset)
    mark_as_dropping(dataset)
    tf_keras.patch_data_of_fit(_drop_partial_batches_if_marked)
    if not tf.__version__.startswith("1."):
        training_passes.patch_loops_that_train(is_marked_as_dropping)
    return dataset


def mark_as_dropping(dataset: Dataset) -> None:
    """Mark a dataset as one that drops partial batches in training."""
    setattr(tf_data.unwrap_dataset(dataset), _MARK, True)


def is_marked_as_dropping(dataset: Dataset) -> bool:
    """Return True for a marked dataset; one that is made from it is none."""
    return hasattr(tf_data.unwrap_dataset(dataset), _MARK)


def _drop_partial_batches_if_marked(data: object, steps: Value) -> tuple[object, Value]:
    """Return the data and the steps of an epoch of ``fit``, without partial batches if it is a marked dataset.

    Keras begins a dataset anew in each epoch if it has as many batches as the epoch has steps. Otherwise it reads on,
    and training ends with the dataset. So an epoch that was a pass through the dataset stays one.
    """
    if not isinstance(data, (tf.compat.v2.data.Dataset, tf_api.v1.data.Dataset)):
        return data, steps
    sources = tf_graph.reachable_nodes([tf_data.unwrap_dataset(data)], tf_data.dataset_inputs)
    if not any(map(is_marked_as_dropping, sources)):
        return data, steps
    is_pass = steps is not None and tf_data.cardinality(data) == steps
    return enforce_static_batch(data), None if is_pass else steps
