"""Record what sessions are fed and what they return: tensors, summaries, and all variables when a session closes."""

from __future__ import annotations

import threading
import weakref
from dataclasses import asdict
from typing import Callable, Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_data, tf_op_creation, tf_recording, tf_session
from npu_shim._tensorflow.types import FeedDict, Fetches, Function, Graph, Operation, Result, Session, Tensor, Value
from npu_shim.rehearsal.recording import methods, queue_sizes
from npu_shim.rehearsal.recording.by_version import ByVersion
from npu_shim.rehearsal.recording.kinds import FEED, FETCH, SUMMARY, UNTRAINED
from npu_shim.rehearsal.recording.names import fetch_name, fetches_with_values, plain_name
from npu_shim.rehearsal.recording.races import Races, order_races
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.settings import Race
from npu_shim.rehearsal.recording.summaries import scalars_of
from npu_shim.rehearsal.recording.unordered_reads import UnorderedReads
from npu_shim.rehearsal.recording.variables import smallest_variables


def watch_sessions(
    recorder: Recorder,
    read: Callable[[Session], Iterable[tuple[str, Value]]],
    ordered: Sequence[Race] | None = None,
) -> None:
    """Record each run of a session, and its variables when it closes after a training step.

    After Keras' fit they are not recorded again: a migrated script closes the session of Keras, an original may not.

    Args:
        recorder: receives the values.
        read: returns name and value of each variable of a session.
        ordered: the races in which reads come before the update; None to order none.
    """
    recording = _SessionRecording(recorder, read, ordered or ())
    recorder.at_end.append(recording.record_open_session)
    methods.wrap_methods(tf_recording.BaseSession, ("run",), recording.run)
    methods.wrap_methods(tf_recording.BaseSession, ("close",), recording.close)


class _SessionRecording:
    """The runs of the sessions of a process. The arguments are those of watch_sessions()."""

    def __init__(
        self, recorder: Recorder, read: Callable[[Session], Iterable[tuple[str, Value]]], ordered: Sequence[Race]
    ) -> None:
        self._recorder, self._read, self._ordered = recorder, read, ordered
        self._unordered, self._races = UnorderedReads(), Races(self._note_races)
        known: weakref.WeakKeyDictionary[Graph, set[str]] = weakref.WeakKeyDictionary()
        self._untrained, self._sizes = ByVersion(untrained_variables_in), ByVersion(queue_sizes.ops_from_queue_sizes)
        self._ordering = ByVersion(lambda graph: order_races(graph, ordered, known))
        self._open: Session | None = None  # the last one that is open

    def run(
        self,
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        *a: object,
        **k: object,
    ) -> Result:
        """Run a session, and record what it is fed and returns."""
        recorder = self._recorder
        if self._ordered:
            self._ordering.findings_in(session.graph)
        if recorder.writer.repeats or self._ordered:
            self._races.look_for_races(session.graph, fetches)
        result = original(session, fetches, feed_dict, *a, **k)
        if recorder.is_inside("evaluate", "predict"):  # of an Estimator; what it returns is recorded
            return result
        if tf_data.is_in_thread_of_tensorflow():  # a dataset is ahead by chance; its batches are recorded in the step
            return result
        all_fetched = list(fetches_with_values(fetches, result))
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main and all(
            tf_recording.is_enqueue_op(tf_recording.fetched_op(session.graph, fetch)) for fetch, _ in all_fetched
        ):
            if next(script_frames.running_frames(), None) is not None:  # not of a QueueRunner
                recorder.writer.write_event("note", queue_thread=recorder.script_line())
            return result  # a thread is ahead by chance; what it gives to a queue is recorded where it leaves the queue
        if self._open is not session:
            self._open = session
            self._note_unordered_op(session)
        if is_main and recorder.claim_step_for_sampling():
            untrained = smallest_variables(self._untrained.findings_in(session.graph))
            recorder.record_values(UNTRAINED, _read_variables(session, untrained))
        recorder.record_values(FEED, list(fed_arrays(session, feed_dict)))
        self._record_fetched(session.graph, all_fetched)
        return result

    def close(self, original: Function, session: Session) -> Result:
        """Record the variables of a session, and close it."""
        self._record_variables(session)
        self._open = None
        return original(session)

    def record_open_session(self) -> None:
        """Record the variables of the session that was not closed."""
        if self._open is not None:
            self._record_variables(self._open)

    def _record_variables(self, session: Session) -> None:
        if self._recorder.steps > self._recorder.final_step:
            self._recorder.record_final_variables(self._read(session))

    def _record_fetched(self, graph: Graph, all_fetched: Sequence[tuple[Tensor | Operation, Value]]) -> None:
        by_chance = self._unordered.are_unordered(graph, [fetch for fetch, _ in all_fetched])
        of_sizes = self._sizes.findings_in(graph)
        kept = [pair for pair, skip in zip(all_fetched, by_chance) if pair[1] is not None and not skip]
        fetched = [pair for pair in kept if tf_recording.fetched_op(graph, pair[0]) not in of_sizes]
        self._recorder.record_values(FETCH, [(fetch_name(fetch), value) for fetch, value in fetched])
        for fetch, value in kept:
            if isinstance(fetch, tf.Tensor) and isinstance(value, bytes) and tf_recording.is_summary_op(fetch.op):
                tags = queue_sizes.scalar_summary_tags(of_sizes)
                self._recorder.record_values(SUMMARY, [pair for pair in scalars_of(value) if pair[0] not in tags])

    def _note_unordered_op(self, session: Session) -> None:
        op = tf_recording.find_nondeterministic_op(session.graph)
        if op is not None:
            line = tf_recording.creation_line_of_op(op)
            self._recorder.writer.write_event("note", unordered_op=op.type, unordered_line=line)

    def _note_races(self, noted: Sequence[Race]) -> None:
        races = [asdict(race) for race in noted]
        self._recorder.writer.write_event("note", racing_update=noted[0].line, races=races)


def fed_arrays(session: Session, feed_dict: FeedDict | None) -> Iterator[tuple[str, Value]]:
    """Yield name and value of each array of a feed_dict; a sparse tensor has several."""
    for tensor, value in tf_session.fed_values(session, feed_dict):
        array = np.asarray(value)
        if array.dtype != object:
            yield plain_name(tensor), array


def untrained_variables_in(graph: Graph) -> list[tuple[str, Value]]:
    """Return name and tensor of the variables that no optimizer updates, without the slots of an optimizer."""
    ops = graph.get_operations()
    taken = [tf_op_creation.original_tensor(tensor) for op in ops if "Apply" in op.type for tensor in op.inputs]
    reads = [tensor.op.inputs[0] for tensor in taken if tensor.op.type == "ReadVariableOp"]
    updated = {tensor.op for tensor in taken + reads}
    return [(name, value) for name, value in _variables_of_graph(graph) if not _ops_behind_variable(value) & updated]


def _ops_behind_variable(value: Tensor) -> set[Operation]:
    """Return the op of a variable's value, and those from which it reads."""
    value = tf_op_creation.original_tensor(value)
    return {value.op, *(tensor.op for tensor in value.op.inputs)}


def variables_of(session: Session) -> Iterator[tuple[str, Value]]:
    """Yield the variables that have a value."""
    return _read_variables(session, _variables_of_graph(session.graph))


def _variables_of_graph(graph: Graph) -> list[tuple[str, Value]]:
    """Return name and tensor of the variables, without those that follow from the sizes of queues."""
    variables = graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    of_sizes = queue_sizes.ops_from_queue_sizes(graph)
    named = [(plain_name(variable), tf_recording.variable_graph_element(variable)) for variable in variables]
    return [(name, value) for name, value in named if value is None or not _ops_behind_variable(value) & of_sizes]


def _read_variables(session: Session, variables: list[tuple[str, Value]]) -> Iterator[tuple[str, Value]]:
    """Yield name and value of the variables that have one."""
    run = type(session).run
    read = getattr(run, "npu_shim_original", run)
    try:
        with tf_op_creation.suspend_hooks():
            values = read(session, [tensor for _, tensor in variables])
    except tf.errors.OpError:  # some have none
        for name, tensor in variables:
            try:
                with tf_op_creation.suspend_hooks():
                    value = read(session, tensor)
                yield name, value
            except tf.errors.OpError:
                continue
        return
    except RuntimeError:  # the session is closed
        return
    yield from zip([name for name, _ in variables], values)
