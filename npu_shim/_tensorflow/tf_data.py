"""Private parts of tf.data: the steps of a pipeline, element structures and numbers of elements."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops import batching as _batching
from tensorflow.python.data.ops import iterator_ops as _iterators, multi_device_iterator_ops as _device_iterators

from npu_shim._tensorflow import script_frames
from npu_shim._tensorflow.tf_api import static_value
from npu_shim._tensorflow.types import Dataset, Iterator, Operation, Structure, Tensor

try:
    from tensorflow.python.data.ops.structured_function import StructuredFunctionWrapper as _DatasetFunction
except ImportError:  # TF 2.6 and before
    from tensorflow.python.data.ops.dataset_ops import StructuredFunctionWrapper as _DatasetFunction

v1 = tf.compat.v1
MAP_AND_BATCH = _batching._MapAndBatchDataset  # the dataset of tf.data.experimental.map_and_batch
# Methods of tf.compat.v1.data.Dataset that make iterators.
ITERATOR_MAKERS = ("_make_initializable_iterator", "_make_one_shot_iterator")
# The iterators of eager code, and those of its strategies; TensorFlow 1.15 has the former under another name only.
EAGER_ITERATOR = getattr(_iterators, "OwnedIterator", None) or _iterators.IteratorV2
DEVICE_ITERATOR = (
    getattr(_device_iterators, "OwnedMultiDeviceIterator", None) or _device_iterators.MultiDeviceIteratorV2
)
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def unwrap_dataset(dataset: Dataset) -> Dataset:
    """Return the dataset inside the wrappers of TensorFlow 1."""
    while isinstance(dataset, v1.data.Dataset) and hasattr(dataset, "_dataset"):
        dataset = dataset._dataset
    return dataset


def dataset_inputs(dataset: Dataset) -> list[Dataset]:
    """Return the datasets that a dataset reads from."""
    return [unwrap_dataset(d) for d in unwrap_dataset(dataset)._inputs()]


def iterator_resource_op(iterator: Iterator) -> Operation:
    """Return the operation that makes the resource of an iterator of a graph."""
    return iterator._iterator_resource.op


def iterator_initializer(iterator: Iterator) -> Operation | None:
    """Return the operation that begins an iterator of a graph; None if it begins by itself, as in eager code."""
    return getattr(iterator, "_initializer", None)


def dataset_kind(dataset: Dataset) -> str:
    """Return the kind of a dataset in every version's spelling: 'Batch', 'Repeat', 'Map' ..."""
    name = type(unwrap_dataset(dataset)).__name__.lstrip("_")
    return name[: -len("Dataset")] if name.endswith("Dataset") else name


def dataset_batch_size(dataset: Dataset) -> int | None:
    """Return the constant batch size of a batching dataset, or None if it is not constant."""
    real = unwrap_dataset(dataset)
    size = getattr(real, "_batch_size_t", None)
    value = static_value(real._batch_size if size is None else size)
    return None if value is None else int(value)


def drops_remainder(dataset: Dataset) -> bool:
    """Return True if a batching dataset certainly drops partial batches."""
    real = unwrap_dataset(dataset)
    flag = getattr(real, "_drop_remainder_t", getattr(real, "_drop_remainder", None))
    return flag is not None and bool(static_value(flag))


def repeats_forever(dataset: Dataset) -> bool:
    """Return True for a step that certainly repeats its elements forever."""
    real = unwrap_dataset(dataset)
    count = static_value(real._count) if dataset_kind(real) in ("Repeat", "ShuffleAndRepeat") else None
    return count is not None and int(count) < 0


def may_reshuffle(dataset: Dataset) -> bool:
    """Return True if a ``shuffle`` step may have another order in each pass."""
    return getattr(unwrap_dataset(dataset), "_reshuffle_each_iteration", None) is not False


def number_of_slices(dataset: Dataset) -> int | None:
    """Return the number of elements of ``from_tensor_slices``, None if its shapes do not show it."""
    if dataset_kind(dataset) != "TensorSlice":
        return None
    sizes = {
        tf.compat.dimension_value(tensor.shape[0]) for tensor in unwrap_dataset(dataset)._tensors if tensor.shape.rank
    }
    sizes.discard(None)
    return int(sizes.pop()) if len(sizes) == 1 else None


def dataset_num_shards(dataset: Dataset) -> int | None:
    """Return the constant number of shards of a ``shard`` step, or None if it is not constant."""
    value = static_value(dataset._num_shards)
    return None if value is None else int(value)


def element_structure(dataset: Dataset) -> tuple[Structure, Structure, Structure]:
    """Return shapes, types and classes of one element, each nested like the element."""
    return v1.data.get_output_shapes(dataset), v1.data.get_output_types(dataset), v1.data.get_output_classes(dataset)


def cardinality(dataset: Dataset) -> int:
    """Return the number of elements of a dataset without reading any; negative if infinite or unknown.

    In graph mode it is evaluated in its own session. A dataset made from placeholders or tables cannot be evaluated,
    and counts as unknown.
    """
    return _evaluate_int(tf.data.experimental.cardinality(dataset))


def count_elements(dataset: Dataset) -> int:
    """Read all elements of a dataset and return their number; unknown as in cardinality."""
    return _evaluate_int(dataset.reduce(np.int64(0), lambda count, *_: count + 1))


def _evaluate_int(tensor: Tensor) -> int:
    if tf.executing_eagerly():
        return int(tensor)
    try:
        with v1.Session(graph=tensor.graph) as sess:
            return int(sess.run(tensor))
    except tf.errors.OpError:
        return UNKNOWN_CARDINALITY


def is_in_thread_of_tensorflow() -> bool:
    """Return True in a thread that Python has not started, where TensorFlow calls Python: a function of a dataset."""
    return threading.current_thread().name.startswith("Dummy-")


def is_tracing_dataset_function() -> bool:
    """Return True while TensorFlow traces a function of a dataset."""
    return script_frames.is_code_running(inspect.unwrap(_DatasetFunction.__init__).__code__)
