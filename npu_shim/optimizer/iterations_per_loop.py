"""Several training steps in one session.run, for scripts that use a Session directly."""

from __future__ import annotations

import functools
from typing import Callable, Sequence

from npu_shim._host.argument_checks import check_positive_int
from npu_shim._tensorflow import tf_api, tf_session, tf_threads
from npu_shim._tensorflow.types import FeedDict, Fetches, Graph, Operation, Session, Structure, Tensor
from npu_shim.config.session import session_option
from npu_shim.optimizer import loop_variables, single_thread
from npu_shim.optimizer.step_loop import StepLoop

ITERATION_OP = "IterationOp"  # the name by which the NPU's graph pass finds the op to loop


def set_iteration_per_loop(sess: Session, train_op: Operation, iterations_per_loop: int = 1) -> Operation:
    """Make one run of an op do N training steps.

    A run of the returned op makes N steps. Everything else that is fetched with
    it has the value of the last step. On the NPU the device loops. On the CPU a
    loop in the graph makes the first N - 1 steps (see step_loop), and the last
    step runs with the fetches. The end of the input ends the loop with
    tf.errors.OutOfRangeError; the steps made until then count.

    Args:
        sess: the session that will run it; created before the graph is finalized.
        train_op: the op of one training step.
        iterations_per_loop: N, equal to the session option of this name.
    Returns:
        The op to run: train_op itself if N is 1.
    Raises:
        ValueError: if train_op is not an Operation, N is less than 1, or the
            session option has another value.
        TypeError: if N is not an int.
    """
    _check_op(train_op)
    check_positive_int(iterations_per_loop, "iterations_per_loop")
    if iterations_per_loop == 1:
        return train_op
    loop = IterationPerLoop()
    op = loop.create_iteration_per_loop_var(train_op)
    loop.load_iteration_per_loop_var(sess, iterations_per_loop)
    return op


class IterationPerLoop:
    """set_iteration_per_loop in two calls, for graphs that are finalized before there is a session."""

    def create_iteration_per_loop_var(self, train_op: Operation) -> Operation:
        """Return the op to run instead of train_op.

        Raises:
            ValueError: if train_op is not an Operation.
        """
        _check_op(train_op)
        with train_op.graph.as_default():
            self._runner = StepRunner(tf_api.tf.group(train_op, name=ITERATION_OP))
            self._loader = loop_variables.Loader()
        return self._runner.op

    def load_iteration_per_loop_var(self, sess: Session, iterations_per_loop: int = 1) -> None:
        """Set N for a session: a tf.compat.v1.Session or a monitored one.

        Raises:
            TypeError: if N is not an int.
            ValueError: if N is less than 1, or the session option has another value.
        """
        check_positive_int(iterations_per_loop, "iterations_per_loop")
        raw = tf_session.raw_session(sess)
        _check_session_option(raw, iterations_per_loop)
        self._loader.load(raw, iterations_per_loop)
        self._runner.iterations = iterations_per_loop
        self._runner.patch_session(raw)


class StepRunner:
    """Run the first N - 1 of N steps before each run of an op.

    Args:
        op: the op whose run makes N steps.

    Attributes:
        iterations: N.
    """

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.iterations = 1
        self._loop = StepLoop(op)
        self._last_session: Session | None = None  # if its last run was this loop

    def makes_several_steps(self, session: Session, fetches: Fetches) -> bool:
        """Return True if a run of ``fetches`` makes several steps."""
        return self.iterations > 1 and self.op in tf_session.fetched_elements(session, fetches)

    def run_first_steps(
        self, session: Session, fetches: Fetches, feed_dict: FeedDict | None, run: Callable[..., object]
    ) -> None:
        """Run the first N - 1 steps if ``fetches`` contains the op.

        Args:
            session: the raw session.
            fetches: what the session is about to run.
            feed_dict: its feeds.
            run: ``session.run`` without the wrapper of attach().
        """
        if not self.makes_several_steps(session, fetches):
            self._last_session = None
            return
        if self._loop.can_feed([tensor for tensor, _ in tf_session.fed_values(session, feed_dict)]):
            if not self._loop.in_one_thread:
                run(self._loop.op, feed_dict)
                return
            # After another run the input may start again: its first step must run with the pool's threads.
            if self._last_session is not session:
                self._last_session = session
                run(self.op, feed_dict)
                feed_dict = {**(feed_dict or {}), self._loop.limit: self.iterations - 2}
            with tf_threads.run_kernels_in_one_thread():
                run(self._loop.op, feed_dict, single_thread.CALLING_THREAD)
            return
        for _ in range(self.iterations - 1):
            run(self.op, feed_dict)

    def missing_feeds(self, session: Session, feed_dict: FeedDict | None) -> list[str]:
        """Return the names of the placeholders that the steps read and feed_dict does not feed."""
        given = {tensor.op.name for tensor, _ in tf_session.fed_values(session, feed_dict)}
        return [name for name in self._loop.placeholders if name not in given]

    def patch_session(self, session: Session) -> None:
        """Make ``run`` and ``make_callable`` of a raw session run the first steps. A second call does nothing."""
        if getattr(session.run, "runner", None) is self:
            return
        original_run, original_make_callable = session.run, session.make_callable

        @functools.wraps(original_run)
        def run(
            fetches: Fetches, feed_dict: FeedDict | None = None, options: object = None, run_metadata: object = None
        ) -> Structure:
            self.run_first_steps(session, fetches, feed_dict, original_run)
            return original_run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

        @functools.wraps(original_make_callable)
        def make_callable(
            fetches: Fetches, feed_list: Sequence[Tensor] | None = None, accept_options: bool = False
        ) -> Callable[..., Structure]:
            last_step = original_make_callable(fetches, feed_list=feed_list, accept_options=accept_options)

            def call(*values: object, **kwargs: object) -> Structure:
                self.run_first_steps(session, fetches, dict(zip(feed_list or (), values)), original_run)
                session.run = original_run  # some callables call it
                try:
                    return last_step(*values, **kwargs)
                finally:
                    session.run = run

            return call

        run.runner = self  # type: ignore[attr-defined]
        session.run, session.make_callable = run, make_callable


def find_iteration_op(graph: Graph) -> Operation | None:
    """Return the op of a graph that is named IterationOp, or None if there is none."""
    try:
        return graph.get_operation_by_name(ITERATION_OP)
    except KeyError:
        return None


def _check_op(train_op: object) -> None:
    if not isinstance(train_op, tf_api.tf.Operation):
        raise ValueError(
            f"train_op={train_op!r} is {type(train_op).__name__}, but must be a tf.Operation: for several, "
            "tf.group(...)."
        )


def _check_session_option(session: Session, iterations: int) -> None:
    """Check that the session option, which the NPU reads, has the same value."""
    option = session_option(session, "iterations_per_loop")
    if option is not None and option != iterations:
        raise ValueError(
            f"iterations_per_loop={iterations} contradicts the session config, which has iterations_per_loop={option}: "
            f"write session_config(iterations_per_loop={iterations}) for the session, or pass {option} here."
        )
    if option is None and iterations > 1:
        tf_api.logging.warning(
            f"npu_shim: iterations_per_loop={iterations} is missing from the session config, which the NPU reads. "
            f"Write session_config(iterations_per_loop={iterations})."
        )
