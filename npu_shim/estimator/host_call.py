"""Run NPUEstimatorSpec.host_call in every step."""

from __future__ import annotations

from typing import Callable, Tuple

from npu_shim._tensorflow import tf_api, tf_estimator, types

HostCall = Tuple[Callable[..., types.Structure], types.Structure]  # function, tensors

tf = tf_api.tf


class HostCallHook(tf_api.SessionRunHook):
    """Call a function with the tensors of each step.

    The function is called once with the tensors while the graph is built. The
    ops that it returns run in every step. A function that returns no op, or
    cannot work on symbolic tensors, is called after every step with the step's
    values as numpy arrays.

    Args:
        host_call: a valid pair (function, tensors).
    """

    def __init__(self, host_call: HostCall) -> None:
        self._function, self._tensors = host_call
        self._ops: list[types.Operation] = []
        self._start: list[types.Operation] = []
        self._finish: list[types.Operation] = []
        self._graph_error: Exception | None = None
        self._in_step = False

    def begin(self) -> None:
        """Build the function's ops before the graph is finalized, unless step_op() did."""
        if self._in_step:
            return
        self._build_ops_or_keep_error()

    def step_op(self) -> types.Operation:
        """Build one op for the whole call, to run in each of several steps per run.

        Returns:
            An Operation. The hook itself then only opens and flushes summary writers.
        """
        self._in_step = True
        self._build_ops_or_keep_error()
        if self._ops:
            return tf.group(*self._ops)
        flat = tf.nest.flatten(self._tensors)

        def on_host(*values: types.Structure) -> None:
            self._call_on_host(tf.nest.pack_sequence_as(self._tensors, values))

        return tf_api.v1.py_func(on_host, flat, [], stateful=True)

    def _build_ops_or_keep_error(self) -> None:
        try:
            built = self._call(self._tensors)
        except Exception as error:  # raised later, if the function fails with numpy values too
            self._graph_error = error
            built = None
        self._ops = [op for op in tf.nest.flatten(built) if isinstance(op, (tf.Tensor, tf.Operation, tf.Variable))]
        if self._ops:
            self._start, self._finish = tf_estimator.summary_writer_ops()

    def after_create_session(self, session: types.Session, coord: object) -> None:
        session.run(self._start)

    def before_run(self, run_context: types.SessionRunContext) -> types.SessionRunArgs | None:
        if self._in_step:
            return None
        return tf_api.v1.train.SessionRunArgs(self._ops or self._tensors)

    def after_run(self, run_context: types.SessionRunContext, run_values: types.SessionRunValues) -> None:
        if not self._ops and not self._in_step:
            self._call_on_host(run_values.results)

    def end(self, session: types.Session) -> None:
        session.run(self._finish)

    def _call_on_host(self, values: types.Structure) -> None:
        try:
            self._call(values)
        except Exception as error:
            if self._graph_error is None:
                raise
            raise RuntimeError(
                f"The function of host_call fails with tensors ({self._graph_error!r}) and with values ({error!r}). "
                "Let it accept one of them."
            ) from self._graph_error

    def _call(self, values: types.Structure) -> types.Structure:
        return self._function(**values) if isinstance(values, dict) else self._function(*values)
