"""Drop the partial batches of marked datasets in loops of eager code that train.

A pass over a dataset trains if a Keras optimizer made a step since it began. Only its partial batch needs to know that,
and it comes last: until then nothing is decided.
"""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Callable, Mapping

from npu_shim._tensorflow import patches, tf_api, tf_data, tf_keras, tf_recording
from npu_shim._tensorflow.op_types import BATCHING_DATASETS
from npu_shim._tensorflow.types import Dataset, Function, Iterator, Optimizer, Result, Structure
from npu_shim.data.dropping import KEEPS
from npu_shim.data.reading_call import current_reading_call

tf = tf_api.tf
_PASS = "npu_shim_pass"  # attribute of an iterator
_LOGGED = "npu_shim_drop_logged"  # attribute of a step that makes batches
_STEPS = (*KEEPS, "Repeat", "Skip", "Take")  # that leave batches as they are, but for maps
_MAPS = ("Map", "ParallelMap")
# Process state: all optimizers that have applied gradients. A function applies them in Python when it is traced.
_optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()


def patch_loops_that_train(is_marked: Callable[[Dataset], bool]) -> None:
    """Drop partial batches of marked datasets in all loops that train, until ``npu_shim.uninstall()``."""
    if not patches.is_replaced(tf_data.EAGER_ITERATOR, "__next__"):  # a function may have been traced before
        classes = tf_keras.optimizer_classes()
        _optimizers.update(value for value in gc.get_objects() if issubclass(type(value), classes))
    patches.replace_attribute(tf.compat.v2.data.Dataset, "__iter__", functools.partial(_wrap_iter, is_marked))
    patches.replace_attribute(tf_data.EAGER_ITERATOR, "__next__", _wrap_next)
    for owner in tf_keras.optimizer_classes():
        for base in owner.__mro__:
            for name in {"apply_gradients", "apply"} & set(vars(base)):
                patches.replace_attribute(base, name, _wrap_apply)


class _Pass:
    """A pass over a marked dataset.

    Args:
        batching: its step that makes batches.
        size: of a full one.
    """

    def __init__(self, batching: Dataset, size: int) -> None:
        self._batching, self._size = batching, size
        self._steps, self._any_full = steps_by_optimizer(), False

    def is_dropped(self, element: Structure) -> bool:
        """Return True for a partial batch in a pass that trains."""
        rows = next((int(part.shape[0]) for part in tf.nest.flatten(element) if _has_rows(part)), self._size)
        self._any_full = self._any_full or rows == self._size
        is_dropped = rows < self._size and self._any_full and have_stepped_since(self._steps)
        if is_dropped and not hasattr(self._batching, _LOGGED):
            setattr(self._batching, _LOGGED, True)
            tf_api.logging.info(
                f"npu_shim: a loop that trains drops its partial batches: {rows:,} of {self._size:,} examples."
            )
        return is_dropped


def _has_rows(part: object) -> bool:
    return isinstance(part, tf.Tensor) and part.shape.rank != 0


def steps_by_optimizer() -> dict[weakref.ref[Optimizer], int]:
    """Return the number of steps that each optimizer has made."""
    variables = {weakref.ref(optimizer): tf_keras.iterations_variable(optimizer) for optimizer in list(_optimizers)}
    return {
        key: int(variable.numpy())  # a mirrored variable has no int()
        for key, variable in variables.items()
        if variable is not None and tf_recording.has_eager_value(variable)
    }


def have_stepped_since(before: Mapping[weakref.ref[Optimizer], int]) -> bool:
    """Return True if an optimizer has made a step since steps_by_optimizer() returned these numbers."""
    return any(steps > before.get(key, 0) for key, steps in steps_by_optimizer().items())


def _batching_step(is_marked: Callable[[Dataset], bool], dataset: Dataset) -> Dataset | None:
    """Return the step that makes the batches of a marked dataset; None if it is not marked, or may have others."""
    step, marked = tf_data.unwrap_dataset(dataset), False
    kinds: list[str] = []  # the last step first
    while tf_data.dataset_kind(step) in _STEPS:
        marked = marked or is_marked(step)
        kinds.append(tf_data.dataset_kind(step))
        (step,) = tf_data.dataset_inputs(step)
    if not {*_MAPS}.isdisjoint(kinds) and not _is_only_first_dimension_unknown(dataset):
        return None
    if "Take" in kinds and "Repeat" in kinds[kinds.index("Take") :]:
        return None  # its number of batches is given, with the partial ones
    is_batching = tf_data.dataset_kind(step) in BATCHING_DATASETS and not tf_data.drops_remainder(step)
    return step if is_batching and (marked or is_marked(step)) else None


def _is_only_first_dimension_unknown(dataset: Dataset) -> bool:
    """Return True if the first dimension of each component is the only unknown one, so that it is that of the rows."""
    shapes = [shape for shape in tf.nest.flatten(tf_data.element_structure(dataset)[0]) if shape.rank != 0]
    return all(shape.rank and shape[0] is None and shape[1:].is_fully_defined() for shape in shapes)


def _wrap_iter(is_marked: Callable[[Dataset], bool], original: Function) -> Function:
    @functools.wraps(original)
    def iterate(dataset: Dataset) -> Iterator:
        iterator = original(dataset)
        if tf.executing_eagerly():
            batching = _batching_step(is_marked, dataset)
            size = tf_data.dataset_batch_size(batching) if batching is not None else None
            call = current_reading_call() if size else None
            if size and not (call is not None and call.is_keras):
                setattr(iterator, _PASS, _Pass(batching, size))
        return iterator

    return iterate


def _wrap_next(original: Function) -> Function:
    @functools.wraps(original)
    def read(iterator: Iterator) -> Structure:
        element = original(iterator)
        one_pass = getattr(iterator, _PASS, None)
        if one_pass is not None and tf.executing_eagerly():
            while one_pass.is_dropped(element):
                element = original(iterator)  # more follow after repeat()
        return element

    return read


def _wrap_apply(original: Function) -> Function:
    @functools.wraps(original)
    def apply(optimizer: Optimizer, *args: object, **kwargs: object) -> Result:
        _optimizers.add(optimizer)
        return original(optimizer, *args, **kwargs)

    return apply
