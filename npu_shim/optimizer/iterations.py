"""Several training steps for one session.run, for scripts that drive a Session themselves."""
from __future__ import annotations

from typing import Any

from npu_shim import _device, _tf
from npu_shim._later import NotInThisRelease
from npu_shim.optimizer.loop_variables import check_iterations


def set_iteration_per_loop(sess: Any, train_op: Any, iterations_per_loop: int = 1) -> Any:
    """Makes one run of an op do N training steps on the card.

    On the CPU only N = 1 is possible in this release: a script counts on N
    steps for one run, and running one would train too little.

    Args:
        sess: the session that will run it.
        train_op: the op of one training step.
        iterations_per_loop: N, the same as the session option of that name.
    Returns:
        The op to run: train_op itself when N is 1.
    Raises:
        ValueError: train_op is no Operation, or N is less than 1.
        TypeError: N is no int.
        NotInThisRelease: N is greater than 1 and there is no card.
    """
    _check_op(train_op)
    check_iterations(iterations_per_loop)
    if iterations_per_loop == 1:
        return train_op
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu.util").set_iteration_per_loop(sess, train_op, iterations_per_loop)
    raise _not_on_cpu("set_iteration_per_loop", iterations_per_loop)


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
        return train_op

    def load_iteration_per_loop_var(self, sess: Any, iterations_per_loop: int = 1) -> None:
        """Sets N.

        Raises:
            TypeError, ValueError: N is no int of at least 1.
            NotInThisRelease: N is greater than 1 and there is no card.
        """
        check_iterations(iterations_per_loop)
        if _device.device().is_npu:
            self._vendor.load_iteration_per_loop_var(sess, iterations_per_loop)
        elif iterations_per_loop > 1:
            raise _not_on_cpu("load_iteration_per_loop_var", iterations_per_loop)


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


def _check_op(train_op: Any) -> None:
    if not isinstance(train_op, _tf.tf.Operation):
        raise ValueError(
            f"train_op={train_op!r} is {type(train_op).__name__}, but must be a tf.Operation: for several, tf.group(...)."
        )


def _not_on_cpu(name: str, iterations: int) -> NotInThisRelease:
    return NotInThisRelease(
        f"{name} with iterations_per_loop={iterations} is not part of this release of npu_shim on the CPU. Use "
        "iterations_per_loop=1 here and run the train op once per step; NPUEstimator takes any number."
    )
