"""Find the batching steps of a tf.data pipeline, and give elements a static batch dimension."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.op_types import BATCHING_DATASETS
from npu_shim._tensorflow.types import Dataset, Operation, Structure, Tensor, TensorShape

tf = tf_api.tf

_KEEPS_ALL = (
    "Repeat",
    "Prefetch",
    "Cache",
    "Shuffle",
    "ShuffleAndRepeat",
    "Options",
    "Model",
    "MaxIntraOpParallelism",
    "PrivateThreadPool",
    "AssertCardinality",
    "AssertNext",
    "AssertPrev",
    "Sleep",
    "Zip",
    "Concatenate",
    "LatencyStats",
    "Map",
    "ParallelMap",
)
_KEEPS_SOME = ("Take", "Skip", "Shard", "Filter", "TakeWhile", "IgnoreErrors")


class Batching(NamedTuple):
    """One batching step of a pipeline.

    Attributes:
        size: examples in a full batch.
        examples: the tf.data.Dataset of single examples that the step reads.
        all_used: True if the pipeline returns every batch of the step.
    """

    size: int
    examples: Dataset
    all_used: bool


def find_batching_steps(dataset: Dataset) -> list[Batching] | None:
    """Return the batching steps of a pipeline, in the order in which they are read; all have one size.

    For zipped datasets, the steps of the first dataset are returned.

    Returns:
        The steps, or None if they, their size, or the steps after them are unknown.
    """
    kind = tf_data.dataset_kind(dataset)
    if kind in BATCHING_DATASETS:
        size = tf_data.dataset_batch_size(dataset)
        return None if size is None else [Batching(size, tf_data.dataset_inputs(dataset)[0], True)]
    batchings: list[Batching] = []
    for source in tf_data.dataset_inputs(dataset) if kind in _KEEPS_ALL + _KEEPS_SOME else []:
        steps = find_batching_steps(source)
        if steps is None or (batchings and batchings[0].size != steps[0].size):
            return None
        if not batchings or kind == "Concatenate":
            batchings += steps
    if kind in _KEEPS_SOME:
        batchings = [step._replace(all_used=False) for step in batchings]
    return batchings or None


def check_dataset(dataset: object) -> None:
    """Raise TypeError if the argument is not a tf.data.Dataset."""
    if not isinstance(dataset, (tf.compat.v2.data.Dataset, tf_api.v1.data.Dataset)):
        raise TypeError(f"dataset={dataset!r} is {type(dataset).__name__}, but must be a tf.data.Dataset.")


def is_dynamic(shape: TensorShape) -> bool:
    """Return True for a dense shape with an unknown first dimension."""
    if not isinstance(shape, tf.TensorShape) or not shape.rank:
        return False
    return tf.compat.dimension_value(shape[0]) is None


def has_dynamic_batch(dataset: Dataset) -> bool:
    """Return True if a dense component of the elements has an unknown first dimension."""
    shapes, _, classes = tf_data.element_structure(dataset)
    return any(c is tf.Tensor and is_dynamic(s) for s, c in zip(tf.nest.flatten(shapes), tf.nest.flatten(classes)))


def map_arguments_as_element(dataset: Dataset, components: tuple[Structure, ...]) -> Structure:
    """Return the arguments that ``map`` passes to its function as one element."""
    shapes = tf_data.element_structure(dataset)[0]
    return tf.nest.pack_sequence_as(shapes, tf.nest.flatten(components, expand_composites=False))


def dynamic_first_dimensions(element: Structure) -> list[Tensor]:
    """Return the first dimensions, as int32 scalar tensors, of the components with a dynamic first dimension."""
    return [tf.shape(t)[0] for t in tf.nest.flatten(element) if isinstance(t, tf.Tensor) and is_dynamic(t.shape)]


def batch_size_check_op(counts: Sequence[Tensor], size: int, smallest: int) -> Operation:
    """Return an op that fails if the first dimensions of a batch differ or are out of range.

    Args:
        counts: int32 scalars from dynamic_first_dimensions.
        size: examples in a full batch; the largest allowed value.
        smallest: the smallest allowed value.
    """
    equal = tf.reduce_all([tf.equal(count, counts[0]) for count in counts])
    return tf_api.v1.debugging.Assert(
        tf.reduce_all([equal, counts[0] <= size, counts[0] >= smallest]),
        [
            f"npu_shim: a map after batch({size}) changes the batch dimension, which hides partial batches. "
            f"Write batch({size}, drop_remainder=True) and give the map's results static shapes. First dimensions:",
            tf.stack(counts),
        ],
    )


def with_batch_dimension(element: Structure, size: int) -> Structure:
    """Return the element with every dynamic first dimension set to ``size``."""

    def fix(tensor: Tensor) -> Tensor:
        if isinstance(tensor, tf.Tensor) and is_dynamic(tensor.shape):
            tensor = tf.identity(tensor)
            tensor.set_shape([size] + tensor.shape.as_list()[1:])
        return tensor

    return tf.nest.map_structure(fix, element, expand_composites=False)
