"""Report datasets whose ``drop_remainder=True`` leaves no batch, or examples that are never read."""

from __future__ import annotations

import functools
import inspect

from npu_shim._tensorflow import tf_api, tf_data
from npu_shim._tensorflow.types import Dataset, Function, Structure, Tensor
from npu_shim.data.batching import (
    dynamic_first_dimensions,
    has_dynamic_batch,
    map_arguments_as_element,
    with_batch_dimension,
)
from npu_shim.data.dropping import COUNTER, DropCounter, DroppingStep, dropping_steps, number_of_examples
from npu_shim.data.reading_call import ReadingCall, current_reading_call

tf = tf_api.tf


class DropWatch:
    """Check each dataset that Keras or a loop of the script reads, and report each reading call once.

    Training reports examples that every epoch drops, evaluation and prediction all examples that they leave out. The
    number of examples is that of TensorFlow. If TensorFlow does not know it, the step counts what it drops.
    """

    def __init__(self) -> None:
        self._reported: set[tuple[ReadingCall, bool]] = set()

    def check(self, dataset: Dataset, call: ReadingCall | None = None) -> None:
        """Check a dataset.

        Args:
            dataset: a tf.data.Dataset.
            call: the call that reads it; that of the running frames, if None.

        Raises:
            ValueError: Keras reads the dataset, and it has fewer examples than one batch.
        """
        steps = list(dropping_steps(dataset))
        call = (call or current_reading_call()) if steps else None
        if call is None:
            return
        for step in steps:
            examples = number_of_examples(step.examples)
            if step.counter is not None:
                step.counter.report = functools.partial(self._report_dropped_examples, call, step, None)
            elif examples is not None and examples < step.size:
                text = _too_few_examples_text(call, step.size, f"{examples:,}")
                if call.is_keras and tf.executing_eagerly() and tf_data.cardinality(dataset) == 0:
                    raise ValueError(text)
                self._report_once(call, text, True)
            elif examples is not None and examples % step.size:
                self._report_dropped_examples(call, step, examples, examples % step.size, True)

    def _report_dropped_examples(
        self, call: ReadingCall, step: DroppingStep, examples: int | None, dropped_count: int, is_any: bool
    ) -> None:
        """Report the examples that a step drops.

        Args:
            call: the call that reads the dataset.
            step: the step.
            examples: the number of all examples, None if it is unknown.
            dropped_count: the number of those that are dropped.
            is_any: False if there was no full batch.
        """
        if not is_any:
            self._report_once(call, _too_few_examples_text(call, step.size, f"{dropped_count:,}"), True)
            return
        number = f"{dropped_count:,}" if examples is None else f"{dropped_count:,} of {examples:,}"
        if call.trains or not call.is_keras:
            if step.is_fixed:
                cause, fix = (
                    ("cache() keeps the batches", "cache() before shuffle() and batch()")
                    if step.is_cached
                    else ("nothing shuffles them", "shuffle() before batch()")
                )
                self._report_once(
                    call,
                    f"{call} always leaves out the same {number} examples: batch({step.size}, drop_remainder=True) "
                    f"drops them, and {cause}. Call {fix}.",
                )
            return
        self._report_once(
            call,
            f"{call} leaves out {number} examples: batch({step.size}, drop_remainder=True) drops them. Drop them in "
            "training only: npu_shim.data.enforce_static_batch(dataset.batch(n)).",
        )

    def _report_once(self, call: ReadingCall, text: str, is_empty: bool = False) -> None:
        if (call, is_empty) not in self._reported:
            self._reported.add((call, is_empty))
            tf_api.logging.warning("%s", f"npu_shim: {text} Reported once.")


def _too_few_examples_text(place: object, size: int, examples: str) -> str:
    return (
        f"{place}: this dataset has no batch, because it has {examples} examples, fewer than batch({size}, "
        f"drop_remainder=True) needs. Use a batch size of at most {examples}, or repeat() before batch()."
    )


def with_counted_drops(original: Function) -> Function:
    """Return ``batch`` or ``padded_batch`` of datasets, which counts what it drops if TensorFlow does not know it."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def batch(self: Dataset, *args: object, **kwargs: object) -> Dataset:
        batched = original(self, *args, **kwargs)
        call = current_reading_call() if tf.executing_eagerly() else None
        step = next(dropping_steps(batched), None) if call is not None else None
        if call is None or step is None:  # other code than the script batches, or it keeps all examples
            return batched
        examples = tf_data.cardinality(step.examples)
        if 0 <= examples < step.size:
            tf_api.logging.warning("%s", "npu_shim: " + _too_few_examples_text(call.line, step.size, f"{examples:,}"))
        if examples != tf_data.UNKNOWN_CARDINALITY:
            return batched
        bound = signature.bind(self, *args, **kwargs)
        bound.arguments["drop_remainder"] = False
        whole = original(*bound.args, **bound.kwargs)
        return _full_batches_with_count(whole, step.size) if _is_dense(whole) and has_dynamic_batch(whole) else batched

    return batch


def _is_dense(dataset: Dataset) -> bool:
    return all(kind is tf.Tensor for kind in tf.nest.flatten(tf_data.element_structure(dataset)[2]))


def _full_batches_with_count(whole: Dataset, size: int) -> Dataset:
    """Return the full batches of a dataset, and count the examples in the others."""
    counter = DropCounter(size)
    setattr(tf_data.unwrap_dataset(whole), COUNTER, counter)

    def is_full(*element: Structure) -> Tensor:
        full = tf.numpy_function(counter.is_full, dynamic_first_dimensions(element)[:1], tf.bool)
        full.set_shape([])
        return full

    def fix(*element: Structure) -> Structure:
        return with_batch_dimension(map_arguments_as_element(whole, element), size)

    return whole.filter(is_full).map(fix)
