"""Batches that Keras' fit makes of arrays."""

from __future__ import annotations

import functools
import importlib
from typing import Callable, NamedTuple, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import patches
from npu_shim._tensorflow.types import (
    DataAdapter,
    Dataset,
    Function,
    KerasModel,
    Module,
    Result,
    Structure,
    Tensor,
    Value,
)


class ArrayBatches(NamedTuple):
    """The batches of arrays on which fit trains, evaluates or predicts.

    Attributes:
        shuffle: the argument of fit; False if it does not train.
        rows: of the arrays.
        size: of a full batch.
        steps: the number of batches of an epoch, if the caller gives it.
        obstacle: why partial batches cannot be dropped; empty if they can.
    """

    shuffle: Value
    rows: int
    size: int
    steps: int | None
    obstacle: str = ""


Drops = Callable[[ArrayBatches], bool]


def patch_batches_of_arrays(drops: Drops) -> None:
    """Let Keras leave out the last partial batch of arrays where a function asks for it.

    Args:
        drops: is asked for all arrays that Keras cuts into batches, however many rows they have.
    """
    package = tf.keras.Model.__module__.rpartition(".")[0]
    if hasattr(tf.keras, "Operation"):  # Keras 3
        module = importlib.import_module("keras.src.trainers.data_adapters.array_data_adapter")
        patches.replace_attribute(module.ArrayDataAdapter, "__init__", functools.partial(_wrap_adapter, drops))
        return
    module = importlib.import_module(f"{package}.data_adapter")
    for owner in (module.TensorLikeDataAdapter, module.CompositeTensorDataAdapter):
        patches.replace_attribute(owner, "__init__", functools.partial(_wrap_adapter, drops))
    name = "training_arrays" if tf.__version__.startswith("1.") else "training_arrays_v1"
    loops: Module = importlib.import_module(f"{package}.{name}")  # of graph mode
    patches.replace_attribute(loops, "fit_loop", functools.partial(_wrap_loop, drops))


def _wrap_adapter(drops: Drops, original: Function) -> Function:
    @functools.wraps(original)
    def init(adapter: DataAdapter, *args: object, **kwargs: Value) -> None:
        original(adapter, *args, **kwargs)
        partial, size = adapter._partial_batch_size or 0, adapter._batch_size
        rows = (adapter._size - bool(partial)) * size + partial
        obstacle = "eager code of TensorFlow 1.15 counts its batches" if tf.__version__.startswith("1.") else ""
        if drops(ArrayBatches(kwargs.get("shuffle", False), rows, size, kwargs.get("steps"), obstacle)):
            adapter._partial_batch_size = 0  # Keras 3 asks for it when it makes the dataset
            adapter._size -= 1
            if hasattr(adapter, "_has_partial_batch"):
                adapter._has_partial_batch = False
            if hasattr(adapter, "get_tf_dataset"):
                adapter.get_tf_dataset = functools.partial(_dataset_with_other_rows, adapter.get_tf_dataset)
            if hasattr(adapter, "_dataset"):
                adapter._dataset = _full_batches(adapter._dataset, size)

    return init


def _dataset_with_other_rows(make_dataset: Function) -> Dataset:
    """Return a dataset of Keras 3 that shuffles the rows with NumPy.

    Where the script has set a seed, ``tf.random.shuffle`` gives all epochs the same order.
    """

    def shuffle(rows: Tensor) -> Tensor:
        shuffled = tf.numpy_function(np.random.permutation, [rows], rows.dtype)
        return tf.ensure_shape(shuffled, rows.shape)

    original = tf.random.shuffle
    setattr(tf.random, "shuffle", shuffle)
    try:
        return make_dataset()
    finally:
        setattr(tf.random, "shuffle", original)


def _full_batches(dataset: Dataset, size: int) -> Dataset:
    """Return the full batches of a dataset, with their size in its type."""

    def is_full(*element: Structure) -> Tensor:
        part = tf.nest.flatten(element)[-1]
        rows = part.dense_shape[0] if isinstance(part, tf.SparseTensor) else tf.shape(part)[0]
        return tf.equal(tf.cast(rows, tf.int32), size)

    shapes = [[size, *spec.shape[1:]] for spec in tf.nest.flatten(dataset.element_spec)]
    return with_shapes(dataset.filter(is_full), shapes)


def with_shapes(dataset: Dataset, shapes: Sequence[Sequence[int | None]]) -> Dataset:
    """Return a dataset whose dense tensors have these shapes in its type."""

    def fix(*element: Structure) -> Structure:
        parts = [
            tf.ensure_shape(part, shape) if isinstance(part, tf.Tensor) else part
            for part, shape in zip(tf.nest.flatten(element), shapes)
        ]
        fixed = tf.nest.pack_sequence_as(element, parts)
        return fixed if is_tuple else fixed[0]

    is_tuple = isinstance(dataset.element_spec, tuple)
    return dataset.map(fix)


def _wrap_loop(drops: Drops, original: Function) -> Function:
    @functools.wraps(original)
    def loop(model: KerasModel, **kwargs: Value) -> Result:
        kinds = ("inputs", "targets", "sample_weights")
        if not isinstance(kwargs.get("inputs"), list):  # a dataset or an iterator
            return original(model, **kwargs)
        arrays = [array for kind in kinds for array in kwargs.get(kind) or () if array is not None]
        size, steps = kwargs.get("batch_size"), kwargs.get("steps_per_epoch")
        rows, obstacle = getattr(arrays[0], "shape", (None,))[0] if arrays else None, ""
        if not size or not isinstance(rows, int):
            return original(model, **kwargs)
        if not all(isinstance(array, np.ndarray) for array in arrays):
            obstacle = "not all data are NumPy arrays"
        elif size < rows < 2 * size:  # Keras gives all rows to a single batch
            obstacle = f"graph mode needs two batches, {2 * size:,} rows"
        batches = ArrayBatches(kwargs.get("shuffle"), rows, size, steps, obstacle)
        if drops(batches):
            order = _Order(rows, rows - rows % size)
            for kind in kinds:
                if kwargs.get(kind) is not None:
                    kwargs[kind] = [array if array is None else _ShuffledRows(array, order) for array in kwargs[kind]]
        return original(model, **kwargs)

    return loop


class _Order:
    """An order of rows, another one in each pass.

    Args:
        total: the number of rows.
        kept: the number of those that a pass has.
    """

    def __init__(self, total: int, kept: int) -> None:
        self.kept = kept
        self._total, self._number = total, -1

    def of_pass(self, number: int) -> np.ndarray:
        """Return the numbers of the rows of a pass. Passes follow each other."""
        if number == self._number + 1:
            self._number, self._rows = number, np.random.permutation(self._total)[: self.kept]
        if number != self._number:
            raise RuntimeError(f"npu_shim: Keras reads pass {number} over arrays in pass {self._number}.")
        return self._rows


class _ShuffledRows:
    """An array with fewer rows than another one, which are other rows of it in each pass.

    The loop of graph mode asks each of its arrays once for the rows of a batch.
    """

    def __init__(self, array: np.ndarray, order: _Order) -> None:
        self.shape, self.dtype, self.ndim = (order.kept, *array.shape[1:]), array.dtype, array.ndim
        self._array, self._order, self._read = array, order, 0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, numbers: Sequence[int]) -> np.ndarray:
        order = self._order.of_pass(self._read // self._order.kept)
        self._read += len(numbers)
        return self._array[order[numbers]]
