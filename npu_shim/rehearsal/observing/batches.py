"""The sizes of the batches of a dataset, and whether one was partial. A step of the pipeline notes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.types import Dataset, Structure, TensorShape
from npu_shim.data.batching import as_element
from npu_shim.data.dropping import is_mixed, number_of_examples

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

tf = tf_api.tf
_BATCHES = ("Batch", "PaddedBatch", "ParallelBatch", "MapAndBatch")


def with_noted_batches(seen: Seen, dataset: Dataset) -> Dataset:
    """Return a dataset of batches with a step that notes their sizes.

    Attributes: ``size`` of a full batch, and ``examples`` of the whole dataset, if they are known; ``mixed``, whether
    each pass may drop other examples; ``batch``, the sizes that occurred; ``partial``, whether there were full batches
    before a partial one; ``axis I.J``, the sizes of a dimension that the type of the dataset does not show.
    """
    kind, size = tf_data.dataset_kind(dataset), None
    if kind in _BATCHES:
        size = tf_data.dataset_batch_size(dataset)
        examples = tf_data.dataset_inputs(dataset)[0]
        seen.note("mixed", is_mixed(examples))
        number = number_of_examples(examples)
        if number is not None:
            seen.note("examples", number)
    if size is not None:
        seen.note("size", size)
    shapes, _, classes = (tf.nest.flatten(part) for part in tf_data.element_structure(dataset))
    if not all(isinstance(shape, tf.TensorShape) for shape in shapes):
        return dataset
    dense = [index for index, kind in enumerate(classes) if kind is tf.Tensor and shapes[index].rank != 0]
    if not dense:
        return dataset
    notes = _Notes(seen, size, {index: shapes[index] for index in dense})

    def noted(*components: Structure) -> Structure:
        element = as_element(dataset, components)
        parts = tf.nest.flatten(element)
        with tf.control_dependencies([tf.numpy_function(notes.note, [tf.shape(parts[i]) for i in dense], [])]):
            first = tf.identity(parts[dense[0]])
        return tf.nest.pack_sequence_as(element, [*parts[: dense[0]], first, *parts[dense[0] + 1 :]])

    return dataset.map(noted)


class _Notes:
    """Note the shapes of batches.

    Args:
        seen: gets the notes.
        size: of a full batch; None if it is unknown.
        shapes: the known parts of the shapes, by the index of the component.
    """

    def __init__(self, seen: Seen, size: int | None, shapes: dict[int, TensorShape]) -> None:
        self._seen, self._size = seen, size
        self._axes = [
            [axis for axis in range(1, shape.rank or 0) if tf.compat.dimension_value(shape[axis]) is None]
            for shape in shapes.values()
        ]
        self._names = list(shapes)
        self._any_full = False

    def note(self, *shapes: TensorShape) -> None:
        """Note the shapes of one batch."""
        rows = int(shapes[0][0])
        self._seen.note("batch", rows)
        if self._size is not None and rows < self._size:
            self._seen.note("partial", self._any_full)
        self._any_full = self._any_full or rows == self._size
        for name, axes, shape in zip(self._names, self._axes, shapes):
            for axis in axes:
                self._seen.note(f"axis {name}.{axis}", int(shape[axis]))
