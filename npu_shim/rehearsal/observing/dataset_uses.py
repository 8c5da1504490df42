"""The uses of datasets: which fed training, evaluation or prediction.

Keras and Estimators are known by the running frames. A run of a session trains if it makes an update of an optimizer. A
loop of the script trains if steps were made between two of its batches.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, List, Mapping, Sequence, Tuple

from npu_shim._tensorflow import script_frames, tf_api, tf_data, tf_graph, tf_session
from npu_shim._tensorflow.tf_estimator import estimator_class
from npu_shim._tensorflow.types import (
    Dataset,
    Estimator,
    Fetches,
    Function,
    GradientTape,
    Graph,
    Iterator,
    Optimizer,
    Result,
    Session,
    Value,
)
from npu_shim.data import dropped_in_training, training_passes
from npu_shim.data.reading_call import current_reading_call
from npu_shim.rehearsal.observing.batches import Batches
from npu_shim.rehearsal.observing.own_counters import compares_own_count
from npu_shim.rehearsal.recording import methods, updating
from npu_shim.rehearsal.recording.recorder import Recorder

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

tf = tf_api.tf
TRAINING, EVALUATION, PREDICTION, OTHER = "training", "evaluation", "prediction", "other"
_BATCHES = "npu_shim_batches"  # attribute of a dataset that is watched
_ITERATORS = "npu_shim_iterators"  # attribute of a graph: the readings by the name of an iterator
_ESTIMATOR = "estimator"
_CANNED = "tensorflow_estimator.python.estimator.canned"


def note_dataset(seen: Seen, value: Value) -> Value:
    """Note the uses of a dataset, and of those that are made from it, as ``used``.

    What trains on it is noted as ``trained_by``: keras, estimator, session, a ``for`` statement, calls of next(), or
    hand where the script updates variables without an optimizer of Keras. It is ``counted`` if the script asks for its
    length, or counts its batches with ``enumerate`` or a counter that it compares with a computed number. See Batches.
    """
    if not isinstance(value, (tf.compat.v2.data.Dataset, tf_api.v1.data.Dataset)):
        return value
    batches = Batches(seen, value)
    noted = batches.with_noted_sizes(value)
    setattr(tf_data.unwrap_dataset(noted), _BATCHES, batches)
    return noted


def _watched_batches(dataset: Dataset) -> list[Batches]:
    """Return the notes on a dataset and those that it reads from."""
    datasets = tf_graph.reachable_nodes([tf_data.unwrap_dataset(dataset)], tf_data.dataset_inputs)
    return [getattr(source, _BATCHES) for source in datasets if hasattr(source, _BATCHES)]


class _Reading:
    """A pass over a dataset.

    Args:
        watched: what it reads.
        by: what reads it.
    """

    def __init__(self, watched: list[Batches], by: str) -> None:
        self.watched, self.by = watched, by
        self.made = self.at = 0  # the number of the batch at which it begins, and of its last batch
        self.batches = self.steps = 0  # its own batches, and the steps at the last of them
        self.gradients = 0  # the number of gradients of tapes before it
        self.is_mixed = self.trains = False
        self.optimizer_steps: Mapping[weakref.ref[Optimizer], int] = {}  # when a loop of eager code began

    def note_use(self, use: str) -> None:
        """Note a use."""
        for batches in self.watched:
            batches.seen.note("used", use)
            if use == TRAINING:
                batches.seen.note("trained_by", self.by)
                batches.note_training()


_Uses = List[Tuple[_Reading, str]]


class DatasetUses:
    """Watch what reads the datasets of this process.

    Args:
        recorder: counts the updates of optimizers.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._number = 0  # of batches that loops have read
        self._counting: dict[tuple[str, int], bool] = {}  # by the line of a loop: if it counts its batches
        self._open: dict[int, _Reading] = {}  # of loops, by the id of the iterator
        self._gradients = 0  # of tapes, that eager code computed
        self._is_traced = False  # a function has gradients of tapes
        self._plans: weakref.WeakKeyDictionary[Session, dict[object, _Uses]] = weakref.WeakKeyDictionary()

    def watch_datasets(self) -> None:
        """Watch all iterators, functions and sessions."""
        for name in tf_data.ITERATOR_MAKERS:
            methods.wrap_methods(tf_api.v1.data.Dataset, (name,), self._note_made_iterator)
        methods.wrap_methods(tf_api.v1.data.Iterator, ("make_initializer",), self._note_initialized_iterator)
        methods.wrap_methods(tf_session.BaseSession, ("run",), self._watch_session_run)
        owner = estimator_class()
        for base in owner.__mro__[:-1] if owner else ():
            methods.wrap_methods(base, ("train",), self._watch_estimator_training)
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

    # Eager code.

    def _watch_loop(self, original: Function, dataset: Dataset) -> Result:
        iterator = original(dataset)
        if id(iterator) in self._open:  # the dataset wraps the one that made it
            return iterator
        reading = _Reading(_watched_batches(dataset), "for")
        if _note_reading_if_by_keras(reading):
            return iterator
        if not tf.executing_eagerly():
            reading.note_use(OTHER)
            return iterator
        reading.made, reading.gradients = self._number, self._gradients
        reading.optimizer_steps = training_passes.steps_by_optimizer()
        loop = script_frames.calling_line()
        if reading.watched and loop not in self._counting:
            self._counting[loop] = script_frames.is_in_line_with("enumerate(") or compares_own_count(*loop)
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

    def _end_batch(self, reading: _Reading) -> None:
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
        for batches in _watched_batches(dataset):
            batches.seen.note("counted", True)

    def _note_reduce(self, original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        _Reading(_watched_batches(dataset), OTHER).note_use(OTHER)
        return original(dataset, *args, **kwargs)

    def _note_device_iterator(
        self, original: Function, iterator: Iterator, dataset: Dataset = None, *args: object, **kwargs: object
    ) -> Result:
        if dataset is not None:
            reading = _Reading(_watched_batches(dataset), OTHER)
            if not _note_reading_if_by_keras(reading):
                reading.note_use(OTHER)
        return original(iterator, dataset, *args, **kwargs)

    def _note_function_arguments(
        self, original: Function, function: Function, *args: object, **kwargs: object
    ) -> Result:
        for value in [*args, *kwargs.values()]:
            if isinstance(value, tf.compat.v2.data.Dataset):
                _Reading(_watched_batches(value), OTHER).note_use(OTHER)
            elif isinstance(value, tf_data.EAGER_ITERATOR) and id(value) in self._open:
                self._open.pop(id(value)).note_use(OTHER)
        return original(function, *args, **kwargs)

    # Graphs.

    def _watch_estimator_training(
        self, original: Function, estimator: Estimator, *args: object, **kwargs: object
    ) -> Result:
        # NPUEstimator takes the place of those that are not canned.
        is_canned = any(base.__module__.startswith(_CANNED) for base in type(estimator).__mro__)
        with self._recorder.inside("canned" if is_canned else _ESTIMATOR):
            return original(estimator, *args, **kwargs)

    def _note_made_iterator(self, original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        iterator = original(dataset, *args, **kwargs)
        self._add_reading(iterator, dataset)
        return iterator

    def _note_initialized_iterator(
        self, original: Function, iterator: Iterator, dataset: Dataset, *args: object, **kwargs: object
    ) -> Result:
        self._add_reading(iterator, dataset)
        return original(iterator, dataset, *args, **kwargs)

    def _add_reading(self, iterator: Iterator, dataset: Dataset) -> None:
        reading = _Reading(
            _watched_batches(dataset), "estimator" if self._recorder.is_inside(_ESTIMATOR) else "session"
        )
        if tf.executing_eagerly():
            reading.note_use(OTHER)
        elif reading.watched and not _note_reading_if_by_keras(reading):
            resource = tf_data.iterator_resource_op(iterator)
            readings: dict[str, list[_Reading]] = getattr(resource.graph, _ITERATORS, None) or {}
            readings.setdefault(resource.name, []).append(reading)
            setattr(resource.graph, _ITERATORS, readings)

    def _watch_session_run(
        self, original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
    ) -> Result:
        readings: dict[str, list[_Reading]] = getattr(session.graph, _ITERATORS, None) or {}
        if readings and not self._recorder.is_inside("noted"):
            elements = tf_session.fetched_elements(session, fetches)
            key = tuple(element.name for element in elements), sum(map(len, readings.values()))
            plans = self._plans.setdefault(session, {})
            if key not in plans:
                plans[key] = _uses_of_run(session.graph, elements, readings)
            for reading, use in plans[key]:
                inside = self._recorder.is_inside("predict")
                reading.note_use(PREDICTION if use == EVALUATION and inside else use)
        with self._recorder.inside("noted"):
            return original(session, fetches, *args, **kwargs)


def _uses_of_run(graph: Graph, elements: Sequence[Value], readings: dict[str, list[_Reading]]) -> _Uses:
    """Return what a run reads, and how it uses it.

    Args:
        graph: of the session.
        elements: what the run fetches.
        readings: of the graph.
    """
    read = TRAINING if updating.update_numbers_of_run(graph, elements) else EVALUATION
    uses: dict[tuple[int, str], tuple[_Reading, str]] = {}
    for op in tf_graph.ops_with_ancestors(
        element if isinstance(element, tf.Operation) else element.op for element in elements
    ):
        is_read = op.type.startswith("IteratorGetNext")
        if is_read or op.type == "IteratorToStringHandle":
            use = read if is_read else OTHER
            for reading in readings.get(op.inputs[0].op.name, ()):
                uses[id(reading), use] = reading, use
    return list(uses.values())


def _note_reading_if_by_keras(reading: _Reading) -> bool:
    """Note a reading by Keras. Return False if something else reads."""
    call = current_reading_call()
    if call is None or not call.is_keras:
        return False
    reading.by = "keras"
    reading.note_use(TRAINING if call.trains else PREDICTION if call.method.startswith("predict") else EVALUATION)
    return True
