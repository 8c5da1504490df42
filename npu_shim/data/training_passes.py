"""Drop the partial batches of marked datasets in loops of eager code that train.

A pass over a dataset trains if a Keras optimizer made a step since it began. Only its partial batch needs to know that,
and it comes last: until then nothing is decided.
"""

from __future__ import annotations

import functools
import weakref
from typing import Callable

from npu_shim._host import patches
from npu_shim._tensorflow import tf_api, tf_data, tf_keras
from npu_shim._tensorflow.types import Dataset, Function, Iterator, Optimizer, Result, Structure
from npu_shim.data.dropping import BATCHES, KEEPS
from npu_shim.data.reading_call import reading_call

tf = tf_api.tf
_PASS = "npu_shim_pass"  # attribute of an iterator
_LOGGED = "npu_shim_drop_logged"  # attribute of a step that makes batches
_STEPS = (*KEEPS, "Repeat", "Skip", "Take")  # that leave batches as they are
# Process state: the optimizers that have applied gradients. A function applies them in Python once, when it is traced.
_optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()


def watch(is_marked: Callable[[Dataset], bool]) -> None:
    """Drop partial batches of marked datasets in all loops that train, until ``npu_shim.uninstall()``."""
    patches.replace_attribute(tf.compat.v2.data.Dataset, "__iter__", functools.partial(_iterating, is_marked))
    patches.replace_attribute(tf_data.EAGER_ITERATOR, "__next__", _reading)
    for owner in tf_keras.optimizer_classes():
        for base in owner.__mro__:
            for name in {"apply_gradients", "apply"} & set(vars(base)):
                patches.replace_attribute(base, name, _applying)


class _Pass:
    """A pass over a marked dataset.

    Args:
        batching: its step that makes batches.
        size: of a full one.
    """

    def __init__(self, batching: Dataset, size: int) -> None:
        self._batching, self._size = batching, size
        self._steps, self._any_full = _steps(), False

    def drops(self, element: Structure) -> bool:
        """Return True for a partial batch in a pass that trains."""
        rows = next((int(part.shape[0]) for part in tf.nest.flatten(element) if _has_rows(part)), self._size)
        self._any_full = self._any_full or rows == self._size
        is_dropped = rows < self._size and self._any_full and _steps() != self._steps
        if is_dropped and not hasattr(self._batching, _LOGGED):
            setattr(self._batching, _LOGGED, True)
            tf_api.logging.info(
                f"npu_shim: a loop that trains drops its partial batches: {rows:,} of {self._size:,} examples."
            )
        return is_dropped


def _has_rows(part: object) -> bool:
    return isinstance(part, tf.Tensor) and part.shape.rank != 0


def _steps() -> int:
    """Return the number of steps that all optimizers have made."""
    return sum(int(tf_keras.tensorflow_variable(optimizer.iterations)) for optimizer in _optimizers)


def _batching_step(is_marked: Callable[[Dataset], bool], dataset: Dataset) -> Dataset | None:
    """Return the step that makes the batches of a marked dataset; None if it is not marked, or may have others."""
    step, marked = tf_data.unwrap_dataset(dataset), False
    while tf_data.dataset_kind(step) in _STEPS:
        marked = marked or is_marked(step)
        (step,) = tf_data.dataset_inputs(step)
    is_batching = tf_data.dataset_kind(step) in BATCHES and not tf_data.drops_remainder(step)
    return step if is_batching and (marked or is_marked(step)) else None


def _iterating(is_marked: Callable[[Dataset], bool], original: Function) -> Function:
    @functools.wraps(original)
    def iterate(dataset: Dataset) -> Iterator:
        iterator = original(dataset)
        if tf.executing_eagerly():
            batching = _batching_step(is_marked, dataset)
            size = tf_data.dataset_batch_size(batching) if batching is not None else None
            call = reading_call() if size else None
            if size and not (call is not None and call.is_keras):
                setattr(iterator, _PASS, _Pass(batching, size))
        return iterator

    return iterate


def _reading(original: Function) -> Function:
    @functools.wraps(original)
    def read(iterator: Iterator) -> Structure:
        element = original(iterator)
        one_pass = getattr(iterator, _PASS, None)
        if one_pass is not None and tf.executing_eagerly():
            while one_pass.drops(element):
                element = original(iterator)  # more follow after repeat()
        return element

    return read


def _applying(original: Function) -> Function:
    @functools.wraps(original)
    def apply(optimizer: Optimizer, *args: object, **kwargs: object) -> Result:
        _optimizers.add(optimizer)
        return original(optimizer, *args, **kwargs)

    return apply
