"""The uses of datasets in graphs: what a run of a session reads, and what for."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_data, tf_session
from npu_shim._tensorflow.tf_estimator import estimator_class
from npu_shim._tensorflow.types import (
    Dataset,
    Estimator,
    FeedDict,
    Fetches,
    Function,
    Iterator,
    Operation,
    Result,
    Session,
)
from npu_shim.rehearsal.observing.graph_iterators import GraphIterators, IteratorPlan
from npu_shim.rehearsal.observing.readings import (
    EVALUATION,
    OTHER,
    PREDICTION,
    TRAINING,
    Reading,
    note_reading_if_by_keras,
    watched_batches,
)
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.recorder import Recorder

tf = tf_api.tf
_ITERATORS = "npu_shim_iterators"  # attribute of a graph: its GraphIterators
_ESTIMATOR = "estimator"
_CANNED = "tensorflow_estimator.python.estimator.canned"


class GraphReadings:
    """Watch what sessions read.

    Args:
        recorder: of the process.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def watch(self) -> None:
        """Watch all iterators, sessions and Estimators."""
        for name in tf_data.ITERATOR_MAKERS:
            methods.wrap_methods(tf_api.v1.data.Dataset, (name,), self._note_made_iterator)
        methods.wrap_methods(tf_api.v1.data.Iterator, ("make_initializer",), self._note_initializer)
        methods.wrap_methods(tf_session.BaseSession, ("run",), self._watch_session_run)
        methods.wrap_methods(tf_session.BaseSession, tf_session.HIDDEN_RUNS, _note_hidden_run)
        owner = estimator_class()
        for base in owner.__mro__[:-1] if owner else ():
            methods.wrap_methods(base, ("train",), self._watch_estimator_training)

    def _watch_estimator_training(
        self, original: Function, estimator: Estimator, *args: object, **kwargs: object
    ) -> Result:
        # NPUEstimator takes the place of those that are not canned.
        is_canned = any(base.__module__.startswith(_CANNED) for base in type(estimator).__mro__)
        with self._recorder.inside("canned" if is_canned else _ESTIMATOR):
            return original(estimator, *args, **kwargs)

    def _note_made_iterator(self, original: Function, dataset: Dataset, *args: object, **kwargs: object) -> Result:
        iterator = original(dataset, *args, **kwargs)
        self._add_reading(iterator, dataset, tf_data.iterator_initializer(iterator))
        return iterator

    def _note_initializer(
        self, original: Function, iterator: Iterator, dataset: Dataset, *args: object, **kwargs: object
    ) -> Result:
        initializer = original(iterator, dataset, *args, **kwargs)
        self._add_reading(iterator, dataset, initializer)
        return initializer

    def _add_reading(self, iterator: Iterator, dataset: Dataset, initializer: Operation | None) -> None:
        is_estimator = self._recorder.is_inside(_ESTIMATOR)
        reading = Reading(watched_batches(dataset), _ESTIMATOR if is_estimator else "session")
        if tf.executing_eagerly():
            reading.note_use(OTHER)
        elif not note_reading_if_by_keras(reading):
            resource = tf_data.iterator_resource_op(iterator)
            iterators = getattr(resource.graph, _ITERATORS, None) or GraphIterators()
            iterators.add(resource.name, reading, initializer, resource.graph)
            setattr(resource.graph, _ITERATORS, iterators)

    def _watch_session_run(
        self,
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        *args: object,
        **kwargs: object,
    ) -> Result:
        iterators: GraphIterators | None = getattr(session.graph, _ITERATORS, None)
        if iterators is None or self._recorder.is_inside("noted"):
            return original(session, fetches, feed_dict, *args, **kwargs)
        plan = iterators.plan_of_run(session.graph, tf_session.fetched_elements(session, fetches))
        if tf_session.is_remote(session):  # which shares its iterators with others
            iterators.forget()
        if plan.initialized and plan.read + plan.fed:  # in any order
            iterators.begin(plan, session, False)
        self._note_uses(iterators, plan, session, feed_dict)
        succeeded = False
        try:
            with self._recorder.inside("noted"):
                result = original(session, fetches, feed_dict, *args, **kwargs)
                fed = {tensor.name for tensor, _ in tf_session.fed_values(session, feed_dict)} if plan.handles else ()
                for iterator, handle in plan.handles:
                    if handle.name not in fed:
                        iterators.note_handle(iterator, session.run(handle))
            succeeded = True
            return result
        finally:
            if plan.initialized:
                iterators.begin(plan, session, succeeded)

    def _note_uses(
        self, iterators: GraphIterators, plan: IteratorPlan, session: Session, feed_dict: FeedDict | None
    ) -> None:
        other = PREDICTION if self._recorder.is_inside("predict") else EVALUATION
        uses: list[tuple[Reading, str]] = []
        by_handles = iterators.iterators_of_handles(plan, tf_session.fed_values(session, feed_dict) if plan.fed else [])
        for reading in iterators.readings_of([*plan.read, *(by_handles or ())], session):
            uses.append((reading, TRAINING if plan.trains else other))
        if by_handles is None:
            uses += [(reading, OTHER) for readings in iterators.readings.values() for reading in readings]
        for reading, use in uses:
            reading.note_use(use)


def _note_hidden_run(original: Function, session: Session, *args: object, **kwargs: object) -> Result:
    iterators: GraphIterators | None = getattr(session.graph, _ITERATORS, None)
    if iterators is not None:
        iterators.forget()
    return original(session, *args, **kwargs)
