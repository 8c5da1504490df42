"""Drop partial batches where Keras trains on a dataset, and keep them elsewhere."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_data, tf_graph, tf_keras
from npu_shim._tensorflow.types import Dataset
from npu_shim.data.batching import check_dataset
from npu_shim.data.static_batch import enforce_static_batch

tf = tf_api.tf
_MARK = "npu_shim_drops_in_training"  # attribute of a dataset


def drop_in_training(dataset: Dataset) -> Dataset:
    """Let Keras' ``fit`` drop partial batches of a dataset; evaluation, prediction and loops read all of it.

    For a dataset that feeds both, or a function that makes datasets for both::

        data = npu_shim.data.drop_in_training(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32))
        model.fit(data)       # full batches, as enforce_static_batch(data) has them
        model.evaluate(data)  # all examples

    It applies to datasets that are made from it, as by ``map`` and ``prefetch``, too. NPUEstimator does so for every
    dataset. ``npu_shim.uninstall()`` ends it.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
    Returns:
        The same dataset.
    Raises:
        TypeError: if dataset is not a tf.data.Dataset.
        ValueError: in ``fit``, if the dataset is known to have fewer examples than one batch.
    """
    check_dataset(dataset)
    setattr(tf_data.unwrap_dataset(dataset), _MARK, True)
    tf_keras.patch_data_of_fit(_full_batches)
    return dataset


def _full_batches(data: object) -> object:
    """Return the data of ``fit``, without partial batches if it is a marked dataset."""
    if not isinstance(data, (tf.compat.v2.data.Dataset, tf_api.v1.data.Dataset)):
        return data
    sources = tf_graph.reachable_nodes([tf_data.unwrap_dataset(data)], tf_data.dataset_inputs)
    return enforce_static_batch(data) if any(hasattr(source, _MARK) for source in sources) else data
