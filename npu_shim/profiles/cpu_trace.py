"""Observers of the CPU: the metadata of sessions in TensorFlow 1, and the lines at which threads are."""

from __future__ import annotations

import collections
import contextlib
import copy
import os
import threading
import time
from typing import Callable, Iterator

import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_profile, tf_session
from npu_shim._tensorflow.tf_capture import MAKE_CALLABLE
from npu_shim._tensorflow.types import Function, Message, Result, Session, Value
from npu_shim.rehearsal.assess.lines import relative_path
from npu_shim.rehearsal.recording import methods

v1 = tf.compat.v1
_INTERVAL_S = 0.002
_RUNS_OPS = ("execute.py", "session.py", "gen_", "cpu_trace.py")  # begin the files whose frame waits for ops


class SessionTrace:
    """The metadata of the runs of sessions, from start() to stop().

    TensorFlow hands the metadata over after the last op of a run. This time is lost, and the clock does not count it.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._lost = 0.0  # microseconds from the last ops of runs to their returns
        self._metadata: list[tuple[Message, float]] = []  # and what was lost before
        self._spans: list[tf_profile.Span] = []
        methods.wrap_methods(tf_session.BaseSession, ("run",), self._run_session)
        methods.wrap_methods(tf_session.BaseSession, (MAKE_CALLABLE,), self._make_callable)

    def start(self) -> None:
        """Start."""
        self._is_on = True

    def _adjusted_time(self) -> float:
        return time.time() * 1e6 - self._lost

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Note the begin and the end of a context."""
        begin = self._adjusted_time()
        yield
        if self._is_on:
            self._spans.append((name, begin, self._adjusted_time()))

    def _run_session(self, original: Function, session: Session, *values: Value, **named: Value) -> Result:
        if not self._is_on:
            return original(session, *values, **named)
        given = {**dict(zip(("fetches", "feed_dict", "options", "run_metadata"), values)), **named}
        traced = copy.deepcopy(given.get("options")) or v1.RunOptions()
        traced.trace_level = v1.RunOptions.FULL_TRACE
        fed = given["fetches"], given.get("feed_dict"), traced
        return self._run_with_metadata(given.get("run_metadata"), lambda metadata: original(session, *fed, metadata))

    def _make_callable(self, original: Function, session: Session, options: Message) -> Function:
        """Return what runs the callable of a Keras model, with a trace if it is wanted."""
        full = copy.deepcopy(options)
        full.run_options.trace_level = v1.RunOptions.FULL_TRACE
        plain, traced = original(session, options), original(session, full)

        def call(*values: object, run_metadata: Message | None = None) -> Result:
            if not self._is_on:
                return plain(*values, run_metadata=run_metadata)
            return self._run_with_metadata(run_metadata, lambda metadata: traced(*values, run_metadata=metadata))

        return call

    def _run_with_metadata(self, run_metadata: Message | None, run: Callable[[Message], Result]) -> Result:
        """Run with metadata, and note a copy of it: the script may use its own again."""
        metadata = v1.RunMetadata() if run_metadata is None else run_metadata
        result = run(metadata)
        self._metadata.append((copy.deepcopy(metadata), self._lost))
        nodes = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
        ends = [(node.all_start_nanos + node.all_end_rel_nanos) / 1e3 for node in nodes]
        self._lost += time.time() * 1e6 - max(ends) if ends else 0.0
        return result

    def stop(self) -> tuple[list[tf_profile.OpRun], list[tf_profile.Span], list[tf_profile.Span]]:
        """Stop. Return the runs of ops, the spans, and the tracings of tf.functions."""
        self._is_on = False
        of_sessions = [(tf_profile.op_runs_of_metadata(metadata), lost) for metadata, lost in self._metadata]
        runs = [run._replace(begin=run.begin - lost, end=run.end - lost) for runs, lost in of_sessions for run in runs]
        return runs, self._spans, []


class HostSamples:
    """Sample the threads of this process from now on.

    Args:
        folder: that of the script.
    """

    def __init__(self, folder: str) -> None:
        # the microseconds between two samples, by level (the thread that makes this object: "host") and line
        self._times: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
        self._folder = folder
        self._loop = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_threads, name="npu_shim profile", daemon=True)
        self._thread.start()

    def end(self) -> list[tuple[str, str, float, int]]:
        """Sample no longer. Return level, line, microseconds and number of samples, the longest first."""
        self._ended.set()
        self._thread.join()
        return sorted(((*key, sum(times), len(times)) for key, times in self._times.items()), key=lambda row: -row[2])

    def _sample_threads(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_INTERVAL_S):
            now = time.monotonic()
            for thread, path in script_frames.innermost_files().items():
                waits = path.startswith(script_frames.LIBRARIES) and os.path.basename(path).startswith(_RUNS_OPS)
                own = None if waits and thread == self._loop else next(script_frames.running_frames(thread), None)
                if own is not None:
                    name = (
                        f"{relative_path(own.f_code.co_filename, self._folder)}:{own.f_lineno} ({own.f_code.co_name})"
                    )
                    self._times["host" if thread == self._loop else "pipeline", name].append((now - last) * 1e6)
            last = now
