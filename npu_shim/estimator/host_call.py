"""Runs NPUEstimatorSpec.host_call in every step."""

from __future__ import annotations

from typing import Any, Callable

from npu_shim import _tf, _tf_estimator

tf = _tf.tf


class HostCallHook(_tf.SessionRunHook):
    """Calls a function with the step's tensors.

    The function is called once with the tensors while the graph is built; the
    ops it returns run in every step. A function that returns no op, or cannot
    work on tensors that have no value yet, is called after every step with the
    step's values as numpy arrays.

    Args:
        host_call: a pair (function, tensors), checked already.
    """

    def __init__(self, host_call: tuple[Callable, Any]) -> None:
        self._function, self._tensors = host_call
        self._ops: list[Any] = []
        self._start: list[Any] = []
        self._finish: list[Any] = []
        self._graph_error: Exception | None = None
        self._in_step = False

    def begin(self) -> None:
        """Builds what the function builds, unless step_op() did; no graph is changed later."""
        if self._in_step:
            return
        self._build()

    def step_op(self) -> Any:
        """Builds one op that does the whole call, to be run with each of several steps in a run.

        Returns:
            An Operation; the hook itself then opens and flushes summary writers only.
        """
        self._in_step = True
        self._build()
        if self._ops:
            return tf.group(*self._ops)
        flat = tf.nest.flatten(self._tensors)

        def on_host(*values: Any) -> None:
            self._call_on_host(tf.nest.pack_sequence_as(self._tensors, values))

        return _tf.v1.py_func(on_host, flat, [], stateful=True)

    def _build(self) -> None:
        try:
            built = self._call(self._tensors)
        except Exception as error:  # kept: it is raised, with its cause, if numpy values do not work either
            self._graph_error = error
            built = None
        self._ops = [op for op in tf.nest.flatten(built) if isinstance(op, (tf.Tensor, tf.Operation, tf.Variable))]
        if self._ops:
            self._start, self._finish = _tf_estimator.summary_writer_ops()

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._start)

    def before_run(self, run_context: Any) -> Any:
        if self._in_step:
            return None
        return _tf.v1.train.SessionRunArgs(self._ops or self._tensors)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if not self._ops and not self._in_step:
            self._call_on_host(run_values.results)

    def end(self, session: Any) -> None:
        session.run(self._finish)

    def _call_on_host(self, values: Any) -> None:
        try:
            self._call(values)
        except Exception as error:
            if self._graph_error is None:
                raise
            raise RuntimeError(
                f"host_call's function failed on the graph's tensors ({self._graph_error!r}) and on a step's values "
                f"({error!r}): it must take one of them."
            ) from self._graph_error

    def _call(self, values: Any) -> Any:
        return self._function(**values) if isinstance(values, dict) else self._function(*values)
