"""End a script after a number of training steps.

Keras' fit and monitored sessions are asked to stop. Loops of the script end with SystemExit, so its finally blocks run.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import Callable, Iterable

import tensorflow as tf

from npu_shim._tensorflow import tf_data, tf_recording, tf_session
from npu_shim._tensorflow.tf_estimator import estimator_class
from npu_shim._tensorflow.types import (
    Fetches,
    Function,
    GradientTape,
    Optimizer,
    Result,
    Session,
    SessionRunContext,
    SessionRunValues,
)
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.names import fetch_name, single_fetches
from npu_shim.rehearsal.recording.optimizers import UpdateWatch
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.update_hooks import optimizer_classes

_CALL = "call that trains"
_NO_LOOP = ("fit", "evaluate", "predict", "monitored", _CALL)
_IGNORED = 100  # a script that catches SystemExit as often never ends


class StepsReached(SystemExit):
    """The script has made its steps."""


class Limit:
    """The functions around calls that may train.

    A call of the script begins a step if an earlier one of the same kind did. So the script ends before such a call is
    repeated, and what it does after the last step is done.

    Args:
        recorder: has the limit.
        recording: knows the optimizers.
    """

    def __init__(self, recorder: Recorder, recording: UpdateWatch) -> None:
        self._recorder = recorder
        self._recording = recording
        self._begins: list[tuple[object, frozenset[str]]] = []  # a function, model or graph, and what is fetched
        self._raised = 0

    def watch_sessions(self) -> None:
        """Watch sessions. Call it before the hooks that record them, and that read variables when they close."""
        methods.wrap_methods(tf_recording.BaseSession, ("run",), self._limit_session_run)
        owner = tf.compat.v1.train.MonitoredSession.__mro__[1]
        methods.wrap_methods(owner, ("__init__",), self._add_stop_hook)
        methods.wrap_methods(owner, ("run",), self._run_monitored_session)

    def watch(self) -> None:
        """Watch everything else. Call it after the hooks that record."""
        for owner in tf_session.FUNCTION, tf_recording.ConcreteFunction:
            methods.wrap_methods(owner, ("__call__",), self._limit_call)
        methods.wrap_methods(tf.keras.Model, ("train_on_batch",), self._limit_call)
        methods.wrap_methods(tf.keras.Model, ("fit", "fit_generator"), self._limit_training)
        owner = estimator_class()
        for base in owner.__mro__[:-1] if owner else ():
            methods.wrap_methods(base, ("train",), self._limit_training)
        for owner in optimizer_classes():
            methods.wrap_methods(owner, ("apply_gradients", "apply"), self._limit_apply)
        methods.wrap_methods(tf.GradientTape, ("gradient",), self._limit_gradient)

    def _limit_session_run(
        self, original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
    ) -> Result:
        names = set(map(fetch_name, single_fetches(fetches))) if self._is_in_loop() else ()
        return self._call_until_limit(session.graph, names, lambda: original(session, fetches, *args, **kwargs))

    def _limit_call(self, original: Function, owner: object, *args: object, **kwargs: object) -> Result:
        return self._call_until_limit(owner, (), lambda: original(owner, *args, **kwargs))

    def _limit_training(self, original: Function, owner: object, *args: object, **kwargs: object) -> Result:
        if not self._is_in_loop():
            return original(owner, *args, **kwargs)
        self._end_if_done()
        result = original(owner, *args, **kwargs)
        if self._recorder.ends_after_training:
            self._end_if_done()
        return result

    def _limit_apply(self, original: Function, optimizer: Optimizer, *args: object, **kwargs: object) -> Result:
        if tf.executing_eagerly() and self._is_in_loop():
            if self._recorder.begins_step(self._recording.number_of_optimizer(optimizer, None)):
                self._end_if_done(within_step=True)
        return original(optimizer, *args, **kwargs)

    def _limit_gradient(self, original: Function, tape: GradientTape, *args: object, **kwargs: object) -> Result:
        result = original(tape, *args, **kwargs)  # notices that the script has updated the variables itself
        if tf.executing_eagerly() and self._is_in_loop() and not self._recorder.has_updated_variables():
            self._end_if_done(within_step=True)
        return result

    def _add_stop_hook(self, original: Function, session: Session, *args: object, **kwargs: object) -> None:
        call = inspect.signature(original).bind(session, *args, **kwargs)
        call.arguments["hooks"] = [*(call.arguments.get("hooks") or ()), _StopHook(self._recorder)]
        original(*call.args, **call.kwargs)

    def _run_monitored_session(self, original: Function, session: Session, *args: object, **kwargs: object) -> Result:
        recorder = self._recorder
        if session.should_stop() and not recorder.is_inside("evaluate", "predict"):  # the script has not looked
            self._end_if_done()
        with recorder.inside("monitored"):
            return original(session, *args, **kwargs)

    def _is_in_loop(self) -> bool:
        """Return True in code of the script that may be its training loop, which no thread of TensorFlow runs."""
        return not tf_data.is_in_thread_of_tensorflow() and not self._recorder.is_inside(*_NO_LOOP)

    def _call_until_limit(self, owner: object, fetched: Iterable[str], call: Callable[[], Result]) -> Result:
        if not self._is_in_loop():
            return call()
        recorder, names = self._recorder, frozenset(fetched)
        if any(known is owner and fewer <= names for known, fewer in self._begins):
            self._end_if_done()
        before = recorder.steps
        with recorder.inside(_CALL):
            result = call()
        if recorder.steps > before and recorder.limit == 0:
            self._end_if_done()
        if recorder.steps > before and (owner, names) not in self._begins:
            self._begins.append((owner, names))
        return result

    def _end_if_done(self, within_step: bool = False) -> None:
        if not self._recorder.is_done():
            return
        self._recorder.ended_within_step = within_step
        if not self._raised:
            self._recorder.writer.write_event("note", stopped=True)
        self._raised += 1
        if self._raised > _IGNORED:
            print("npu-shim verify: the script catches SystemExit and goes on after its last step", file=sys.stderr)
            os._exit(1)
        raise StepsReached(0)


class _StopHook(tf.compat.v1.train.SessionRunHook):
    """Ask a session to stop that has made the last step."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before = 0

    def before_run(self, run_context: SessionRunContext) -> None:
        """Remember the steps."""
        self._before = self._recorder.steps

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Ask to stop. A session that only evaluates goes on."""
        if self._recorder.is_done() and self._recorder.steps > self._before:
            self._recorder.has_cut_training = True
            run_context.request_stop()
