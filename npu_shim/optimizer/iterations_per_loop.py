"""Several training steps for one session.run, for scripts that drive a Session themselves."""

from __future__ import annotations

import functools
from typing import Any, Callable

from npu_shim import _device, _tf, _tf_session, _tf_threads
from npu_shim._checks import check_positive_int
from npu_shim.config.session import session_option
from npu_shim.optimizer import loop_variables, single_thread
from npu_shim.optimizer.step_loop import StepLoop

ITERATION_OP = "IterationOp"  # the name by which the card's graph pass finds the op whose run is a loop


def set_iteration_per_loop(sess: Any, train_op: Any, iterations_per_loop: int = 1) -> Any:
    """Makes one run of an op do N training steps.

    A run of the returned op makes N steps, and everything else that is fetched
    with it has its value of the last one. On the card the device loops; on the
    CPU the first N - 1 steps run in a loop in the graph (see step_loop) and
    the last with the fetches. The end of the input ends the loop with
    tf.errors.OutOfRangeError; the steps made until then count.

    Args:
        sess: the session that will run it; made before the graph is finalized.
        train_op: the op of one training step.
        iterations_per_loop: N, the same as the session option of that name.
    Returns:
        The op to run: train_op itself when N is 1.
    Raises:
        ValueError: train_op is no Operation, N is less than 1, or the session
            option is set to another number.
        TypeError: N is no int.
    """
    _check_op(train_op)
    check_positive_int(iterations_per_loop, "iterations_per_loop")
    if iterations_per_loop == 1:
        return train_op
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu.util").set_iteration_per_loop(
            sess, train_op, iterations_per_loop
        )
    loop = IterationPerLoop()
    op = loop.create_iteration_per_loop_var(train_op)
    loop.load_iteration_per_loop_var(sess, iterations_per_loop)
    return op


class IterationPerLoop:
    """The same in two steps, for graphs that are finalized before there is a session."""

    def create_iteration_per_loop_var(self, train_op: Any) -> Any:
        """The op to run instead of train_op.

        Raises:
            ValueError: train_op is no Operation.
        """
        _check_op(train_op)
        if _device.device().is_npu:
            self._vendor = _device.vendor("npu_bridge.estimator.npu.util").IterationPerLoop()
            return self._vendor.create_iteration_per_loop_var(train_op)
        with train_op.graph.as_default():
            self._steps = Steps(_tf.tf.group(train_op, name=ITERATION_OP))
            self._load = loop_variables.Loader()
        return self._steps.op

    def load_iteration_per_loop_var(self, sess: Any, iterations_per_loop: int = 1) -> None:
        """Sets N for a session: a tf.compat.v1.Session or a monitored one.

        Raises:
            TypeError: N is no int.
            ValueError: N is less than 1, or the session option is set to another number.
        """
        check_positive_int(iterations_per_loop, "iterations_per_loop")
        if _device.device().is_npu:
            self._vendor.load_iteration_per_loop_var(sess, iterations_per_loop)
            return
        raw = _tf_session.raw_session(sess)
        _check_session_option(raw, iterations_per_loop)
        self._load.load(raw, iterations_per_loop)
        self._steps.iterations = iterations_per_loop
        self._steps.attach(raw)


class Steps:
    """Runs the first N - 1 of N steps whenever an op is about to be run.

    Args:
        op: the op whose run stands for N steps.

    Attributes:
        iterations: N.
    """

    def __init__(self, op: Any) -> None:
        self.op = op
        self.iterations = 1
        self._loop = StepLoop(op)
        self._session: Any = None  # whose last run was this loop

    def stand_for(self, session: Any, fetches: Any) -> bool:
        """Whether running ``fetches`` means several steps."""
        return self.iterations > 1 and self.op in _tf_session.fetched_elements(session, fetches)

    def before(self, session: Any, fetches: Any, feed_dict: Any, run: Callable[..., Any]) -> None:
        """Makes the first steps if ``fetches`` asks for the op.

        Args:
            session: the raw session.
            fetches, feed_dict: what it is about to run.
            run: ``session.run``, without what attach() added.
        """
        if not self.stand_for(session, fetches):
            self._session = None
            return
        if self._loop.can_feed(_tf_session.fed_tensors(session, feed_dict)):
            if not self._loop.is_light:
                run(self._loop.op, feed_dict)
                return
            if self._session is not session:  # input may begin anew with any other run, and then finds its threads here
                self._session = session
                run(self.op, feed_dict)
                feed_dict = {**(feed_dict or {}), self._loop.limit: self.iterations - 2}
            with _tf_threads.unsplit_kernels():
                run(self._loop.op, feed_dict, single_thread.IN_CALLERS_THREAD)
            return
        for _ in range(self.iterations - 1):
            run(self.op, feed_dict)

    def unfed(self, session: Any, feed_dict: Any) -> Any:
        """Names of the placeholders that the steps read and feed_dict leaves out."""
        given = {tensor.op.name for tensor in _tf_session.fed_tensors(session, feed_dict)}
        return [name for name in self._loop.placeholders if name not in given]

    def attach(self, session: Any) -> None:
        """Makes ``run`` and ``make_callable`` of a raw session do the first steps by themselves; once."""
        if getattr(session.run, "steps", None) is self:
            return
        run_alone, make_alone = session.run, session.make_callable

        @functools.wraps(run_alone)
        def run(fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            self.before(session, fetches, feed_dict, run_alone)
            return run_alone(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

        @functools.wraps(make_alone)
        def make_callable(fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Callable[..., Any]:
            last = make_alone(fetches, feed_list=feed_list, accept_options=accept_options)

            def call(*values: Any, **kwargs: Any) -> Any:
                self.before(session, fetches, dict(zip(feed_list or (), values)), run_alone)
                session.run = run_alone  # which some callables call
                try:
                    return last(*values, **kwargs)
                finally:
                    session.run = run

            return call

        run.steps = self  # type: ignore[attr-defined]
        session.run, session.make_callable = run, make_callable


class LoopHook(_tf.SessionRunHook):
    """Sets the number of steps per run in every new session of an Estimator on the card."""

    def __init__(self, iterations_per_loop: int) -> None:
        self._iterations = iterations_per_loop
        self._loop = IterationPerLoop()

    def loop_of(self, train_op: Any) -> Any:
        """The op that makes several steps of train_op."""
        return self._loop.create_iteration_per_loop_var(train_op)

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._loop.load_iteration_per_loop_var(session, self._iterations)


def iteration_op(graph: Any) -> Any | None:
    """The op of a graph whose run is a loop, by its name; None where there is none."""
    try:
        return graph.get_operation_by_name(ITERATION_OP)
    except KeyError:
        return None


def _check_op(train_op: Any) -> None:
    if not isinstance(train_op, _tf.tf.Operation):
        raise ValueError(
            f"train_op={train_op!r} is {type(train_op).__name__}, but must be a tf.Operation: for several, tf.group(...)."
        )


def _check_session_option(session: Any, iterations: int) -> None:
    """The card reads the session option, so both must say the same."""
    option = session_option(session, "iterations_per_loop")
    if option is not None and option != iterations:
        raise ValueError(
            f"iterations_per_loop={iterations} contradicts the session config, which has iterations_per_loop={option}: "
            f"write session_config(iterations_per_loop={iterations}) for the session, or pass {option} here."
        )
    if option is None and iterations > 1:
        _tf.logging.warning(
            "npu_shim: iterations_per_loop=%d, but the session config does not say so, which the card needs: write "
            "session_config(iterations_per_loop=%d).",
            iterations,
            iterations,
        )
