"""Profile steps on the CPU: by the metadata of sessions in TensorFlow 1, by its profiler in TensorFlow 2."""

from __future__ import annotations

import collections
import gc
import os
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence, Tuple

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation, tf_profile, tf_session
from npu_shim._tensorflow.tf_capture import MAKE_CALLABLE
from npu_shim._tensorflow.tf_profile import OpRun
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.profiles import cpu_form
from npu_shim.profiles.coverage import filled, union
from npu_shim.profiles.cpu_form import Api
from npu_shim.profiles.cpu_host import HostSamples
from npu_shim.profiles.profiler import Profiler
from npu_shim.rehearsal.assess.lines import line_of_caller, lines_of
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.functions import without_xla

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import (
        FeedDict,
        Fetches,
        Function,
        Graph,
        Message,
        Operation,
        Result,
        Session,
        Value,
    )

v1 = tf.compat.v1
Span = Tuple[str, float, float]  # name, begin and end in microseconds
_MARK, _MARKS = "npu_shim", 5  # in a trace, to find its clock


class CpuProfiler(Profiler, tf_op_creation.OpHook):
    """TensorFlow's profiler, and samples of the lines of the script.

    Args:
        folder: gets the profile.
        job: the folder of all ranks.
    """

    def __init__(self, folder: str, job: str) -> None:
        self._folder, self._job, self._script = folder, job, os.getcwd()
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self._eager: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self._is_prepared = self._is_on = False
        self._step = 0
        self._samples: HostSamples | None = None
        self._collectives: list[Span] = []
        self._ends: list[float] = []

    def watch(self) -> None:
        without_xla()
        tf_op_creation.add(self)
        methods.wrap(GroupBackend, ("run",), self._collective)

    def outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Take note of the graph of an op, or of the line that runs it."""
        if op is not None:
            self._graphs.add(op.graph)
        elif self._is_prepared:
            self._eager[op_type][line_of_caller(self._script)] += 1
        return list(outputs)

    def _collective(self, original: Function, group: Any, key: str, *args: object) -> Result:
        begin = _now()
        result = original(group, key, *args)
        if self._is_on:
            self._collectives.append((key, begin, _now()))
        return result

    def prepare(self) -> None:
        self._is_prepared = True

    def begin(self, step: int) -> None:
        self._is_prepared = False
        self._step = step
        gc.collect()  # takes half a second after the imports, which would be in one of the few steps
        self._start()
        self._samples = HostSamples(self._script)

    def _start(self) -> None:
        """Trace from now on."""
        self._is_on = True
        self.ends_step()

    def ends_step(self) -> None:
        self._ends.append(_now())

    def end(self) -> str:
        samples = [] if self._samples is None else self._samples.end()
        tf_op_creation.remove(self)
        self._is_on = False
        runs, tracings, clock = self._stop()
        runs += [
            OpRun(key, key.partition(" ")[0], clock(begin), clock(end), task="COMMUNICATION")
            for key, begin, end in self._collectives
        ]
        apis = [*(Api("host", f"retrace {name}", end - begin, 1) for name, begin, end in tracings), *samples]
        cpu_form.write(self._folder, self._step, runs, list(map(clock, self._ends)), apis, self._lines(runs))
        return f"Read them with: npu-shim profile {self._job}"

    def _stop(self) -> tuple[list[OpRun], Sequence[Span], Callable[[float], float]]:
        """Return the runs of ops, the tracings of functions, and the time on their clock of a moment."""
        raise NotImplementedError

    def _lines(self, runs: Iterable[OpRun]) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and line of the ops that ran. An inlined function puts parts before their names."""
        ops = {op.name: op for graph in self._graphs for op in graph.get_operations()}
        for name in sorted({run.name for run in runs}):
            parts = name.split("/")
            op = next((ops[end] for end in ("/".join(parts[n:]) for n in range(len(parts))) if end in ops), None)
            lines = [line for line, _ in self._eager[name].most_common(1)] if op is None else lines_of(op, self._script)
            if lines:
                yield name, name if op is None else op.type, lines[0]


class SessionProfiler(CpuProfiler):
    """The metadata of the runs of sessions.

    TensorFlow hands the metadata over after the last op of a run. This time is taken out of the clock.
    """

    def __init__(self, folder: str, job: str) -> None:
        super().__init__(folder, job)
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
        if not self._is_on:
            return original(session, fetches, feed_dict, options, run_metadata)
        traced = v1.RunOptions() if options is None else _copied(options)
        traced.trace_level = v1.RunOptions.FULL_TRACE
        return self._noted(run_metadata, lambda metadata: original(session, fetches, feed_dict, traced, metadata))

    def _callable(self, original: Function, session: Session, options: Message) -> Function:
        """Return what runs the callable of a Keras model, with a trace if it is wanted."""
        plain = original(session, options)
        traced: list[Function] = []

        def call(*values: object, run_metadata: Message = None) -> Result:
            if not self._is_on:
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

    def _stop(self) -> tuple[list[OpRun], Sequence[Span], Callable[[float], float]]:
        found = [(tf_profile.runs_in(metadata), returned) for metadata, returned in self._metadata]
        last = [(max(each.end for each in runs), returned) for runs, returned in found if runs]
        handed_over = np.array(sorted(each for each in last if each[0] < each[1])).reshape(-1, 2) * 1000  # nanoseconds
        begin, end = handed_over.astype(np.int64).T
        stands = union(begin, end, np.full(len(begin), True))

        def clock(moment: float) -> float:
            return moment - float(filled(stands, np.array([[0, int(moment * 1000)]]))[0, 0]) / 1000

        made = [run._replace(begin=clock(run.begin), end=clock(run.end)) for runs, _ in found for run in runs]
        return made, (), clock


class ProcessProfiler(CpuProfiler):
    """The trace of TensorFlow 2: sessions, functions and eager code."""

    def __init__(self, folder: str, job: str) -> None:
        super().__init__(folder, job)
        self._host = tf_profile.HostTrace()
        self._marked: list[float] = []

    def _start(self) -> None:
        self._host.start()
        for _ in range(_MARKS):
            self._marked.append(_now())
            self._host.mark(_MARK)
        super()._start()

    def _stop(self) -> tuple[list[OpRun], Sequence[Span], Callable[[float], float]]:
        events = self._host.stop()
        marks = (event.begin for event in events if event.name == _MARK)
        offset = min(begin - moment for begin, moment in zip(marks, self._marked))  # a busy host delays some of them
        return tf_profile.runs_of(events), tf_profile.tracings(events), lambda moment: moment + offset


def _copied(message: Message) -> Message:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _now() -> float:
    """Return the time of the clock of the metadata, in microseconds."""
    return time.time() * 1e6
