"""A run on the CPU as TensorFlow traces it: the metadata of sessions in TensorFlow 1, its profiler in TensorFlow 2."""

from __future__ import annotations

import bisect
import time
from typing import TYPE_CHECKING, Any, Callable

import tensorflow as tf

from npu_shim._tensorflow import tf_profile, tf_session
from npu_shim._tensorflow.tf_profile import OpRun
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.profiles.cpu_form import Recorded
from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import FeedDict, Fetches, Function, Message, Result, Session

_MARK = "npu_shim step"


class Trace:
    """The part of both traces that is the same."""

    def __init__(self) -> None:
        self.is_on = False
        self._collectives: list[tuple[str, float, float]] = []

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
        raise NotImplementedError

    def end(self) -> Recorded:
        """Trace no longer. Return what was traced."""
        raise NotImplementedError


class SessionTrace(Trace):
    """The metadata of the runs of sessions.

    TensorFlow hands the metadata over after the last op of a run. This time is taken out of the clock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._metadata: list[tuple[Message, float]] = []  # and the time at which a run returned
        self._ends: list[float] = []

    def watch(self) -> None:
        super().watch()
        methods.wrap(tf_session.BaseSession, ("run",), self._run)
        tf_profile.replace_callables(self._callable)

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
        traced = tf_profile.full_trace(options)
        return self._noted(run_metadata, lambda metadata: original(session, fetches, feed_dict, traced, metadata))

    def _callable(self, original: Function, session: Session, options: Message) -> Function:
        """Return what runs the callable of a Keras model, with a trace if it is wanted."""
        plain = original(session, options)
        traced: list[Function] = []

        def call(*values: object, run_metadata: Message = None) -> Result:
            if not self.is_on:
                return plain(*values, run_metadata=run_metadata)
            if not traced:
                copy = type(options)()
                copy.CopyFrom(options)
                copy.run_options.CopyFrom(tf_profile.full_trace(copy.run_options))
                traced.append(original(session, copy))
            return self._noted(run_metadata, lambda metadata: traced[0](*values, run_metadata=metadata))

        return call

    def _noted(self, given: Message, run: Callable[[Message], Result]) -> Result:
        """Run with metadata, a copy of which is noted: the script may use its own again."""
        metadata = tf.compat.v1.RunMetadata() if given is None else given
        result = run(metadata)
        noted = tf.compat.v1.RunMetadata()
        noted.CopyFrom(metadata)
        self._metadata.append((noted, _now()))
        return result

    def ends_step(self) -> None:
        self._ends.append(_now())

    def end(self) -> Recorded:
        self.is_on = False
        runs: list[OpRun] = []
        clock = _Clock()
        for metadata, returned in self._metadata:
            found = tf_profile.runs_in(metadata)
            runs += found
            if found:
                clock.drop(max(each.end for each in found), returned)
        return Recorded(
            [run._replace(begin=clock(run.begin), end=clock(run.end)) for run in runs],
            [clock(each) for each in self._ends],
            [(key, clock(begin), clock(end)) for key, begin, end in self._collectives],
        )


class _Clock:
    """A clock that stands still at times."""

    def __init__(self) -> None:
        self._begins: list[float] = []
        self._stands: list[tuple[float, float]] = []  # the begin, and the time without all stands before

    def drop(self, begin: float, end: float) -> None:
        """Let it stand still from begin to end, after all other times."""
        if end > begin >= (self._stands[-1][0] if self._stands else begin):
            self._begins.append(begin)
            self._stands.append((end, (self._stands[-1][1] if self._stands else 0.0) + end - begin))

    def __call__(self, moment: float) -> float:
        place = bisect.bisect_right(self._begins, moment)
        if not place:
            return moment
        end, dropped = self._stands[place - 1]
        return moment - dropped + max(end - moment, 0.0)


class ProcessTrace(Trace):
    """The trace of TensorFlow 2: sessions, functions and eager code."""

    def __init__(self) -> None:
        super().__init__()
        self._host = tf_profile.HostTrace()
        self._began = 0.0

    def begin(self) -> None:
        self._host.start()
        self._began = _now()
        super().begin()

    def ends_step(self) -> None:
        self._host.mark(_MARK)

    def end(self) -> Recorded:
        self.is_on = False
        lines = self._host.stop()
        ends = sorted(event.begin for line in lines for event in line.events if event.name == _MARK)
        offset = ends[0] - self._began
        return Recorded(
            tf_profile.runs_of(lines),
            ends,
            [(key, begin + offset, end + offset) for key, begin, end in self._collectives],
            list(tf_profile.tracings(lines)),
        )


def _now() -> float:
    """Return the time of the clock of the metadata, in microseconds."""
    return time.time() * 1e6
