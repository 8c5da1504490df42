"""Where a tf.data pipeline makes its batches, and of what size."""

from __future__ import annotations

from typing import Any, NamedTuple

from npu_shim import _tf, _tf_data

tf = _tf.tf

_BATCHES = ("Batch", "PaddedBatch", "ParallelBatch", "MapAndBatch")
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
    """One step of a pipeline that makes batches.

    Attributes:
        size: examples in a full batch.
        examples: the tf.data.Dataset of single examples that it reads.
        all_used: whether every batch of it comes out of the pipeline.
    """

    size: int
    examples: Any
    all_used: bool


def find_batching(dataset: Any) -> list[Batching] | None:
    """The batching steps behind a dataset, all of one size and in the order in which they are read.

    Of datasets that are zipped, and so read in step, it is the first one's.

    Returns:
        None when the steps, their size, or what follows them cannot be known.
    """
    kind = _tf_data.dataset_kind(dataset)
    if kind in _BATCHES:
        size = _tf_data.dataset_batch_size(dataset)
        return None if size is None else [Batching(size, _tf_data.dataset_inputs(dataset)[0], True)]
    found: list[Batching] = []
    for one in _tf_data.dataset_inputs(dataset) if kind in _KEEPS_ALL + _KEEPS_SOME else []:
        behind = find_batching(one)
        if behind is None or (found and found[0].size != behind[0].size):
            return None
        if not found or kind == "Concatenate":
            found += behind
    if kind in _KEEPS_SOME:
        found = [one._replace(all_used=False) for one in found]
    return found or None


def check_dataset(dataset: Any) -> None:
    """Raises TypeError for what is no tf.data.Dataset."""
    if not isinstance(dataset, (tf.compat.v2.data.Dataset, _tf.v1.data.Dataset)):
        raise TypeError(f"dataset={dataset!r} is {type(dataset).__name__}, but must be a tf.data.Dataset.")


def is_open(shape: Any) -> bool:
    """True for a dense shape whose first dimension is not known."""
    if not isinstance(shape, tf.TensorShape) or not shape.rank:
        return False
    return tf.compat.dimension_value(shape[0]) is None


def has_open_batch(dataset: Any) -> bool:
    """Whether a dense component of the elements has an unknown first dimension."""
    shapes, _, classes = _tf_data.element_structure(dataset)
    return any(c is tf.Tensor and is_open(s) for s, c in zip(tf.nest.flatten(shapes), tf.nest.flatten(classes)))


def as_element(dataset: Any, components: tuple[Any, ...]) -> Any:
    """What ``map`` hands to its function, put together as one element again."""
    shapes = _tf_data.element_structure(dataset)[0]
    return tf.nest.pack_sequence_as(shapes, tf.nest.flatten(components, expand_composites=False))


def open_sizes(element: Any) -> list[Any]:
    """The first dimensions, as scalar tensors, of an element's components that leave theirs open."""
    return [tf.shape(t)[0] for t in tf.nest.flatten(element) if isinstance(t, tf.Tensor) and is_open(t.shape)]


def check_sizes(counts: list[Any], size: int, smallest: int) -> Any:
    """An op that fails where the first dimensions of a batch are not one number of examples.

    Args:
        counts: from open_sizes.
        size: of a full batch.
        smallest: what is allowed.
    """
    alike = tf.reduce_all([tf.equal(count, counts[0]) for count in counts])
    return _tf.v1.debugging.Assert(
        tf.reduce_all([alike, counts[0] <= size, counts[0] >= smallest]),
        [
            f"npu_shim: a map after batch({size}) changes the batch dimension, so smaller batches cannot be told. "
            f"Write batch({size}, drop_remainder=True) and give the map's results static shapes. First dimensions:",
            tf.stack(counts),
        ],
    )


def with_batch_dimension(element: Any, size: int) -> Any:
    """The element, where every first dimension that is open is the known one."""

    def fix(tensor: Any) -> Any:
        if isinstance(tensor, tf.Tensor) and is_open(tensor.shape):
            tensor = tf.identity(tensor)
            tensor.set_shape([size] + tensor.shape.as_list()[1:])
        return tensor

    return tf.nest.map_structure(fix, element, expand_composites=False)
