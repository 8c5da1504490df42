"""A run on the CPU as TensorFlow traces it: the metadata of sessions in TensorFlow 1, its profiler in TensorFlow 2."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_profile, tf_session
from npu_shim._tensorflow.tf_capture import MAKE_CALLABLE
from npu_shim._tensorflow.tf_profile import OpRun
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.profiles.coverage import filled, union
from npu_shim.profiles.cpu_form import Recorded
from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import FeedDict, Fetches, Function, Message, Result, Session

v1 = tf.compat.v1
_BEGIN = "npu_shim begins"  # marks the time in the trace


class Trace:
    """The part of both traces that is the same."""

    def __init__(self) -> None:
        self.is_on = False
        self._collectives: list[tuple[str, float, float]] = []
        self._ends: list[float] = []

    def watch(self) -> None:
        """Install the hooks. Call it before those that count steps."""
        methods.wrap(GroupBackend, ("run",), self._collective)

    def _collective(self, original: Function, group: Any, key: str, *args: object) -> Result:
        begin = _now()
        result = original(group, key, *args)
        if self.is_on:
            self._collectives.append((key, begin, _now()))
        return result

    def begin(self) -> None:
        """Trace from now on."""
        self.is_on = True
        self.ends_step()

    def ends_step(self) -> None:
        """Note that a step has ended."""
        self._ends.append(_now())

    def end(self) -> Recorded:
        """Trace no longer. Return what was traced."""
        self.is_on = False
        runs, tracings, clock = self._stop()
        collectives = [(key, clock(begin), clock(end)) for key, begin, end in self._collectives]
        return Recorded(runs, list(map(clock, self._ends)), collectives, tracings)

    def _stop(self) -> tuple[list[OpRun], Sequence[tuple[str, float, float]], Callable[[float], float]]:
        """Return the runs of ops, the tracings of functions, and the time on their clock of a moment."""
        raise NotImplementedError


class SessionTrace(Trace):
    """The metadata of the runs of sessions.

    TensorFlow hands the metadata over after the last op of a run. This time is taken out of the clock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._metadata: list[tuple[Message, float]] = []  # and the time at which a run returned

    def watch(self) -> None:
        super().watch()
        methods.wrap(tf_session.BaseSession, ("run",), self._run)
        methods.wrap(tf_session.BaseSession, (MAKE_CALLABLE,), self._callable)

    def _run(
        self,
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        options: Message = None,
        run_metadata: Message = None,
    ) -> Result:
        if not self.is_on:
            return original(session, fetches, feed_dict, options, run_metadata)
        traced = v1.RunOptions() if options is None else _copied(options)
        traced.trace_level = v1.RunOptions.FULL_TRACE
        return self._noted(run_metadata, lambda metadata: original(session, fetches, feed_dict, traced, metadata))

    def _callable(self, original: Function, session: Session, options: Message) -> Function:
        """Return what runs the callable of a Keras model, with a trace if it is wanted."""
        plain = original(session, options)
        traced: list[Function] = []

        def call(*values: object, run_metadata: Message = None) -> Result:
            if not self.is_on:
                return plain(*values, run_metadata=run_metadata)
            if not traced:
                copy = _copied(options)
                copy.run_options.trace_level = v1.RunOptions.FULL_TRACE
                traced.append(original(session, copy))
            return self._noted(run_metadata, lambda metadata: traced[0](*values, run_metadata=metadata))

        return call

    def _noted(self, given: Message, run: Callable[[Message], Result]) -> Result:
        """Run with metadata, and note a copy of it: the script may use its own again."""
        metadata = v1.RunMetadata() if given is None else given
        result = run(metadata)
        self._metadata.append((_copied(metadata), _now()))
        return result

    def _stop(self) -> tuple[list[OpRun], Sequence[tuple[str, float, float]], Callable[[float], float]]:
        found = [(tf_profile.runs_in(metadata), returned) for metadata, returned in self._metadata]
        last = [(max(each.end for each in runs), returned) for runs, returned in found if runs]
        handed_over = np.array(sorted(each for each in last if each[0] < each[1])).reshape(-1, 2) * 1000  # nanoseconds
        begin, end = handed_over.astype(np.int64).T
        stands = union(begin, end, np.full(len(begin), True))

        def clock(moment: float) -> float:
            return moment - float(filled(stands, np.array([[0, int(moment * 1000)]]))[0, 0]) / 1000

        made = [run._replace(begin=clock(run.begin), end=clock(run.end)) for runs, _ in found for run in runs]
        return made, (), clock


class ProcessTrace(Trace):
    """The trace of TensorFlow 2: sessions, functions and eager code."""

    def __init__(self) -> None:
        super().__init__()
        self._host = tf_profile.HostTrace()

    def begin(self) -> None:
        self._host.start()
        super().begin()
        self._host.mark(_BEGIN)

    def _stop(self) -> tuple[list[OpRun], Sequence[tuple[str, float, float]], Callable[[float], float]]:
        events = self._host.stop()
        offset = next(event.begin for event in events if event.name == _BEGIN) - self._ends[0]
        return tf_profile.runs_of(events), tf_profile.tracings(events), lambda moment: moment + offset


def _copied(message: Message) -> Message:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _now() -> float:
    """Return the time of the clock of the metadata, in microseconds."""
    return time.time() * 1e6
