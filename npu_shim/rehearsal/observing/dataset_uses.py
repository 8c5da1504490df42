"""The uses of datasets: which fed training, evaluation or prediction.

Keras and Estimators are known by the running frames. A run of a session trains if it makes an update of an optimizer. A
loop of the script trains if steps were made between two of its batches.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING

from npu_shim._tensorflow import script_frames, tf_api, tf_data, tf_session
from npu_shim._tensorflow.types import Dataset, Function, GradientTape, Iterator, Result, Value
from npu_shim.data import dropped_in_training, training_passes
from npu_shim.rehearsal.observing.batches import Batches
from npu_shim.rehearsal.observing.graph_readings import GraphReadings
from npu_shim.rehearsal.observing.own_counters import compares_own_count
from npu_shim.rehearsal.observing.readings import (
    EVALUATION,
    OTHER,
    TRAINING,
    Reading,
    note_reading_if_by_keras,
    watch_batches,
    watched_batches,
)
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.recorder import Recorder

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

tf = tf_api.tf


def note_dataset(seen: Seen, value: Value) -> Value:
    """Note the uses of a dataset, and of those that are made from it, as ``used``.

    What trains on it is noted as ``trained_by``: keras, estimator, session, a ``for`` statement, calls of next(), or
    hand where the script updates variables without an optimizer of Keras. It is ``counted`` if the script asks for its
    length, or compares the number of a batch with a computed one. See Batches.
    """
    if not isinstance(value, (tf.compat.v2.data.Dataset, tf_api.v1.data.Dataset)):
        return value
    batches = Batches(seen, value)
    noted = batches.with_noted_sizes(value)
    watch_batches(noted, batches)
    return noted


class DatasetUses:
    """Watch what reads the datasets of this process.

    Args:
        recorder: counts the updates of optimizers.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._number = 0  # of batches that loops have read
        self._counting: dict[tuple[str, int], bool] = {}  # by the line of a loop: if it counts its batches
        self._open: dict[int, Reading] = {}  # of loops, by the id of the iterator
        self._gradients = 0  # of tapes, that eager code computed
        self._is_traced = False  # a function has gradients of tapes

    def watch_datasets(self) -> None:
        """Watch all iterators, functions and sessions."""
        GraphReadings(self._recorder).watch()
        if tf.__version__.startswith("1."):
            return
        methods.wrap_methods(tf.compat.v2.data.Dataset, ("__iter__",), self._watch_loop)
        methods.wrap_methods(tf.compat.v2.data.Dataset, ("reduce",), self._note_reduce)
        methods.wrap_methods(tf_data.EAGER_ITERATOR, ("__next__", "get_next"), self._watch_next_batch)
        methods.wrap_methods(tf_data.DEVICE_ITERATOR, ("__init__",), self._note_device_iterator)
        methods.wrap_methods(tf_session.FUNCTION, ("__call__",), self._note_function_arguments)
        methods.wrap_methods(tf.GradientTape, ("gradient",), self._note_tape)
        training_passes.patch_loops_that_train(dropped_in_training.is_marked_as_dropping)
        methods.wrap_methods(tf.compat.v2.data.Dataset, ("__len__", "cardinality"), self._note_cardinality_call)
        count = tf.data.experimental.cardinality
        setattr(tf.data.experimental, "cardinality", functools.partial(self._note_cardinality_call, count))

    def note_open_loops(self) -> None:
        """Note the uses by loops that have not ended."""
        for key in list(self._open):
            self._end_reading_and_note_use(key)

    def _watch_loop(self, original: Function, dataset: Dataset) -> Result:
        iterator = original(dataset)
        if id(iterator) in self._open:  # the dataset wraps the one that made it
            return iterator
        reading = Reading(watched_batches(dataset), "for")
        if note_reading_if_by_keras(reading):
            return iterator
        if not tf.executing_eagerly():
            reading.note_use(OTHER)
            return iterator
        reading.made, reading.gradients = self._number, self._gradients
        reading.optimizer_steps = training_passes.steps_by_optimizer()
        loop = script_frames.calling_line()
        if reading.watched and loop not in self._counting:
            self._counting[loop] = compares_own_count(*loop)
        if self._counting.get(loop):
            self._note_count(dataset)
        self._open[id(iterator)] = reading
        weakref.finalize(iterator, self._end_reading_and_note_use, id(iterator)).atexit = False
        return iterator

    def _watch_next_batch(self, original: Function, iterator: Iterator, *args: object, **kwargs: object) -> Result:
        reading = self._open.get(id(iterator))
        if reading is None or self._recorder.is_inside("next"):
            return original(iterator, *args, **kwargs)
        if not tf.executing_eagerly():
            reading.note_use(OTHER)
            return original(iterator, *args, **kwargs)
        if reading.by == "for" and not script_frames.is_in_for_statement():
            reading.by = "next"
            if reading.trains:
                reading.note_use(TRAINING)
        self._end_batch(reading)
        try:
            with self._recorder.inside("next"):
                return original(iterator, *args, **kwargs)
        except (StopIteration, tf.errors.OutOfRangeError):
            self._end_reading_and_note_use(id(iterator))
            raise

    def _end_batch(self, reading: Reading) -> None:
        """Note whether there were steps since the last batch of a reading, and begin another."""
        steps = self._recorder.updates
        if reading.batches and steps > reading.steps and not reading.trains:
            reading.trains = True
            if not training_passes.have_stepped_since(reading.optimizer_steps):
                reading.by = "hand"
            reading.note_use(OTHER if reading.is_mixed else TRAINING)
        self._number += 1
        for other in self._open.values():
            # One that was there before reads beside it; one that began since is a loop inside, as for evaluation.
            if other is not reading and other.batches and reading.made < other.at:
                other.is_mixed = True
        reading.steps, reading.at = steps, self._number
        reading.batches += 1

    def _end_reading_and_note_use(self, key: int) -> None:
        reading = self._open.pop(key, None)
        if reading is not None and reading.batches > 1 and not reading.trains:
            # Code that differentiates without an optimizer may update variables itself.
            by_tape = self._is_traced or self._gradients > reading.gradients
            reading.note_use(OTHER if by_tape and not self._recorder.updates else EVALUATION)

    def _note_tape(self, original: Function, tape: GradientTape, *args: object, **kwargs: object) -> Result:
        if tf.executing_eagerly():
            self._gradients += 1
        else:
            self._is_traced = True
        return original(tape, *args, **kwargs)

    def _note_cardinality_call(self, original: Function, dataset: Dataset) -> Result:
        if not script_frames.is_called_by_library():
            self._note_count(dataset)
        return original(dataset)

    def _note_count(self, dataset: Dataset) -> None:
        for batches in watched_batches(dataset):
            batches.seen.note("counted", True)

    def _note_reduce(self, original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        Reading(watched_batches(dataset), OTHER).note_use(OTHER)
        return original(dataset, *args, **kwargs)

    def _note_device_iterator(
        self, original: Function, iterator: Iterator, dataset: Dataset = None, *args: object, **kwargs: object
    ) -> Result:
        if dataset is not None:
            reading = Reading(watched_batches(dataset), OTHER)
            if not note_reading_if_by_keras(reading):
                reading.note_use(OTHER)
        return original(iterator, dataset, *args, **kwargs)

    def _note_function_arguments(
        self, original: Function, function: Function, *args: object, **kwargs: object
    ) -> Result:
        for value in [*args, *kwargs.values()]:
            if isinstance(value, tf.compat.v2.data.Dataset):
                Reading(watched_batches(value), OTHER).note_use(OTHER)
            elif isinstance(value, tf_data.EAGER_ITERATOR) and id(value) in self._open:
                self._open.pop(id(value)).note_use(OTHER)
        return original(function, *args, **kwargs)
