"""Padded batches that all have one length."""

from __future__ import annotations

from typing import Iterator

from npu_shim._tensorflow import tf_api, tf_data, tf_recording
from npu_shim._tensorflow.types import Dataset, Structure, Tensor
from npu_shim.data.batching import check_dataset, map_arguments_as_element

tf = tf_api.tf


def fixed_lengths(dataset: Dataset, shapes: Structure) -> Dataset:
    """Return a dataset of padded batches with the static shapes that all of its batches have.

    For ``padded_batch`` with unknown lengths, where the data always lead to the same ones::

        data = npu_shim.data.fixed_lengths(data.padded_batch(32, ([None], [])), ([128], []))

    A batch of another length is an error: it would have other padding than ``padded_batch`` gives it.

    Args:
        dataset: a tf.data.Dataset (of TF 1 or 2) whose elements are batches.
        shapes: of the elements of a batch, in the structure of ``padded_shapes``; None and -1 are any size.
    Returns:
        A tf.data.Dataset with the same batches.
    Raises:
        TypeError: if dataset is not a tf.data.Dataset.
        tf.errors.InvalidArgumentError: at run time, if a batch has another shape.
    """
    check_dataset(dataset)
    expected = list(_component_shapes(tf_data.element_structure(dataset)[0], shapes))
    line = tf_recording.script_line_text()

    def fix(*components: Structure) -> Structure:
        element = map_arguments_as_element(dataset, components)
        parts = tf.nest.flatten(element, expand_composites=False)
        fixed = [_with_checked_sizes(part, sizes, line) for part, sizes in zip(parts, expected)]
        return tf.nest.pack_sequence_as(element, fixed, expand_composites=False)

    return dataset.map(fix)


def _component_shapes(structure: Structure, shapes: Structure) -> Iterator[list[int | None]]:
    """Yield the shape of each component, in the order of tf.nest.flatten."""
    if isinstance(structure, dict):
        for key in sorted(structure):
            yield from _component_shapes(structure[key], shapes[key])
    elif isinstance(structure, tuple):
        for part, shape in zip(structure, shapes):
            yield from _component_shapes(part, shape)
    else:
        sizes = shapes.as_list() if isinstance(shapes, tf.TensorShape) else shapes
        yield [None if size is None or int(size) == -1 else int(size) for size in sizes]


def _with_checked_sizes(part: Tensor, sizes: list[int | None], line: str) -> Tensor:
    known = [(axis, size) for axis, size in enumerate(sizes, 1) if size is not None]
    if not isinstance(part, tf.Tensor) or not known:
        return part
    shape = tf.shape(part)
    same = tf.reduce_all([tf.equal(shape[axis], size) for axis, size in known])
    message = [
        f"npu_shim: {line}: all batches that were seen had the lengths {sizes}, but this one has others. Pad all "
        "batches to one length, or observe again and convert again. Its shape:",
        shape,
    ]
    with tf.control_dependencies([tf_api.v1.debugging.Assert(same, message)]):
        part = tf.identity(part)
    part.set_shape([part.shape.as_list()[0], *sizes])
    return part
