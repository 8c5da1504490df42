"""Profile steps on the CPU: by the metadata of sessions in TensorFlow 1, by its profiler in TensorFlow 2."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation, tf_profile, tf_session
from npu_shim._tensorflow.tf_capture import MAKE_CALLABLE
from npu_shim._tensorflow.tf_profile import OpRun, Span
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.profiles import cpu_form
from npu_shim.profiles.collect import Profiler
from npu_shim.profiles.cpu_host import HostSamples
from npu_shim.rehearsal.assess.lines import line_of_caller, lines_of
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.functions import without_xla

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function, Graph, Message, Operation, Result, Session, Value

v1 = tf.compat.v1
_STEP = "step"  # the name of the span that ends one


class SessionTrace:
    """The metadata of the runs of sessions, from start() to stop().

    TensorFlow hands the metadata over after the last op of a run. This time is lost, and the clock does not count it.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._lost = 0.0  # microseconds from the last ops of runs to their returns
        self._metadata: list[tuple[Message, float]] = []  # and what was lost before
        self._spans: list[Span] = []
        methods.wrap(tf_session.BaseSession, ("run",), self._run)
        methods.wrap(tf_session.BaseSession, (MAKE_CALLABLE,), self._callable)

    def start(self) -> None:
        """Start."""
        self._is_on = True

    def _now(self) -> float:
        return time.time() * 1e6 - self._lost

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Note the begin and the end of a context."""
        begin = self._now()
        yield
        if self._is_on:
            self._spans.append((name, begin, self._now()))

    def _run(self, original: Function, session: Session, *values: Any, **named: Any) -> Result:
        if not self._is_on:
            return original(session, *values, **named)
        given = {**dict(zip(("fetches", "feed_dict", "options", "run_metadata"), values)), **named}
        traced = copy.deepcopy(given.get("options")) or v1.RunOptions()
        traced.trace_level = v1.RunOptions.FULL_TRACE
        fed = given["fetches"], given.get("feed_dict"), traced
        return self._noted(given.get("run_metadata"), lambda metadata: original(session, *fed, metadata))

    def _callable(self, original: Function, session: Session, options: Message) -> Function:
        """Return what runs the callable of a Keras model, with a trace if it is wanted."""
        full = copy.deepcopy(options)
        full.run_options.trace_level = v1.RunOptions.FULL_TRACE
        plain, traced = original(session, options), original(session, full)

        def call(*values: object, run_metadata: Message | None = None) -> Result:
            if not self._is_on:
                return plain(*values, run_metadata=run_metadata)
            return self._noted(run_metadata, lambda metadata: traced(*values, run_metadata=metadata))

        return call

    def _noted(self, given: Message | None, run: Callable[[Message], Result]) -> Result:
        """Run with metadata, and note a copy of it: the script may use its own again."""
        metadata = v1.RunMetadata() if given is None else given
        result = run(metadata)
        self._metadata.append((copy.deepcopy(metadata), self._lost))
        nodes = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
        ends = [(node.all_start_nanos + node.all_end_rel_nanos) / 1e3 for node in nodes]
        self._lost += time.time() * 1e6 - max(ends) if ends else 0.0
        return result

    def stop(self) -> tuple[list[OpRun], list[Span], list[Span]]:
        """Stop. Return the runs of ops, the spans, and the tracings of tf.functions."""
        self._is_on = False
        runs = [
            run._replace(begin=run.begin - lost, end=run.end - lost)
            for metadata, lost in self._metadata
            for run in tf_profile.runs_in(metadata)
        ]
        return runs, self._spans, []


class CpuProfiler(Profiler, tf_op_creation.OpHook):
    """TensorFlow's profiler, and samples of the lines of the script.

    Args:
        first, last: the steps to profile, from 0.
        folder: gets the profile.
        job: the folder of all ranks.
    """

    def __init__(self, first: int, last: int, folder: str, job: str) -> None:
        super().__init__(first, last)
        self._folder, self._job, self._script = folder, job, os.getcwd()
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self._eager: dict[str, str] = {}  # type of an op -> line

    def start(self) -> None:
        """Count from now on."""
        without_xla()
        tf_op_creation.add(self)
        self._trace = SessionTrace() if tf.__version__.startswith("1.") else tf_profile.HostTrace()
        methods.wrap(GroupBackend, ("run",), self._collective)
        super().start()

    def outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Take note of the graph of an op, or of the line that runs it."""
        if op is not None:
            self._graphs.add(op.graph)
        elif self.steps == self._first - 1 and op_type not in self._eager:  # the step before the profile
            self._eager[op_type] = line_of_caller(self._script)
        return list(outputs)

    def _collective(self, original: Function, group: Any, key: str, *args: object) -> Result:
        with self._trace.span(key):
            return original(group, key, *args)

    def begin(self) -> None:
        gc.collect()  # takes half a second after the imports, which would be in one of the few steps
        self._trace.start()
        self.ends_step()
        self._samples = HostSamples(self._script)

    def ends_step(self) -> None:
        with self._trace.span(_STEP):
            pass

    def end(self) -> str:
        samples = self._samples.end()
        tf_op_creation.remove(self)
        runs, spans, tracings = self._trace.stop()
        ends = [begin for name, begin, _ in spans if name == _STEP]
        kind = "COMMUNICATION"
        runs += [OpRun(name, name.split()[0], kind, begin, end) for name, begin, end in spans if name != _STEP]
        apis = [*(("host", f"retrace {name}", end - begin, 1) for name, begin, end in tracings), *samples]
        cpu_form.write(self._folder, self._began or 0, ends, runs, apis, self._lines(runs))
        return f"Read them with: npu-shim profile {self._job}"

    def _lines(self, runs: Iterable[OpRun]) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and line of the ops that ran. An inlined function puts parts before their names."""
        ops = {op.name: op for graph in self._graphs for op in graph.get_operations()}
        for name in sorted({run.name for run in runs}):
            ends = (name.split("/", number)[-1] for number in range(name.count("/") + 1))
            op = next((ops[end] for end in ends if end in ops), None)
            lines = [self._eager.get(name, "")] if op is None else [*lines_of(op, self._script), ""]
            if lines[0]:
                yield name, name if op is None else op.type, lines[0]
