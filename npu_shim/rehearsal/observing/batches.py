"""The sizes of the batches of a dataset, and whether one was partial. A step of the pipeline notes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.op_types import BATCHING_DATASETS
from npu_shim._tensorflow.tf_numpy_function import add_stateless_function_op
from npu_shim._tensorflow.types import Dataset, Structure, TensorShape
from npu_shim.data.batching import map_arguments_as_element
from npu_shim.data.dropping import has_random_order, never_ends, number_of_examples
from npu_shim.rehearsal.recording.saved_graphs import SCOPE

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

tf = tf_api.tf


class Batches:
    """The batches of a dataset.

    It notes ``size`` of a full batch, and ``examples`` of the dataset, if they are known; ``batch``, the sizes that
    occurred; ``partial``, whether there were full batches before a partial one, and ``lost``, the same if the dataset
    trains; ``mixed``, whether each pass of training may drop other examples; ``endless``, whether the examples of
    training never end; ``axis:I.J``, the sizes of a dimension that the type of the dataset does not show.

    Args:
        seen: gets the notes.
        dataset: of batches.
    """

    def __init__(self, seen: Seen, dataset: Dataset) -> None:
        self.seen = seen
        self._size: int | None = None
        self._mixed: bool | None = None
        self._endless = False
        self._any_full = self._trains = False
        self._lost: set[bool] = set()
        self._axes: list[tuple[int, list[int]]] = []  # component, and the dimensions that its type does not show
        if tf_data.dataset_kind(dataset) in BATCHING_DATASETS:
            examples = tf_data.dataset_inputs(dataset)[0]
            self._mixed, self._size = has_random_order(examples), tf_data.dataset_batch_size(dataset)
            self._endless = never_ends(examples)
            for name, number in ("examples", number_of_examples(examples)), ("size", self._size):
                if number is not None:
                    seen.note(name, number)

    def with_noted_sizes(self, dataset: Dataset) -> Dataset:
        """Return the dataset with a step that notes its sizes."""
        shapes, _, classes = (tf.nest.flatten(part) for part in tf_data.element_structure(dataset))
        if not all(isinstance(shape, tf.TensorShape) for shape in shapes):
            return dataset
        dense = [index for index, kind in enumerate(classes) if kind is tf.Tensor and shapes[index].rank != 0]
        if not dense:
            return dataset
        self._axes = [(index, _unknown_dimensions(shapes[index])) for index in dense]

        def step(*components: Structure) -> Structure:
            element = map_arguments_as_element(dataset, components)
            parts = tf.nest.flatten(element)
            sizes = [tf.shape(parts[index]) for index in dense]
            with tf.name_scope(SCOPE):
                noted = add_stateless_function_op(self._note_shapes, sizes, tf.int32)
            first = tf.reshape(parts[dense[0]], noted)
            first.set_shape(parts[dense[0]].shape)
            return tf.nest.pack_sequence_as(element, [*parts[: dense[0]], first, *parts[dense[0] + 1 :]])

        stepped = dataset.map(step, num_parallel_calls=1)
        for name, value in vars(dataset).items():  # such as class_names, which Keras adds
            if not hasattr(stepped, name):
                setattr(stepped, name, value)
        return stepped

    def note_training(self) -> None:
        """Note that the dataset feeds training."""
        if not self._trains and self._mixed is not None:
            self.seen.note("mixed", self._mixed)
            self.seen.note("endless", self._endless)
        self._trains = True
        self._note_lost_batches()

    def _note_shapes(self, *shapes: np.ndarray) -> np.ndarray:
        """Note the shapes of one batch. Return the first, so that what depends on it computes this."""
        rows = int(shapes[0][0])
        self.seen.note("batch", rows)
        if self._size is not None and rows < self._size:
            self.seen.note("partial", self._any_full)
            self._lost.add(self._any_full)
            self._note_lost_batches()
        self._any_full = self._any_full or rows == self._size
        for (component, axes), shape in zip(self._axes, shapes):
            for axis in axes:
                self.seen.note(f"axis:{component}.{axis}", int(shape[axis]))
        return shapes[0]

    def _note_lost_batches(self) -> None:
        for after_full in self._lost if self._trains else ():
            self.seen.note("lost", after_full)


def _unknown_dimensions(shape: TensorShape) -> list[int]:
    """Return the dimensions of unknown size, but for the first."""
    return [axis for axis in range(1, shape.rank or 0) if tf.compat.dimension_value(shape[axis]) is None]
