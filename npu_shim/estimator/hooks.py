"""Session hooks of the vendor's interface: checkpoints, iterations per loop, outputs, training progress."""

from __future__ import annotations

from typing import Callable, Dict, Union

from npu_shim._host import host_env
from npu_shim._host.argument_checks import check_positive_int
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import (
    Operation,
    Session,
    SessionRunArgs,
    SessionRunContext,
    SessionRunValues,
    Structure,
    Tensor,
    Value,
)
from npu_shim.optimizer import loop_variables
from npu_shim.optimizer.iterations_per_loop import ITERATION_OP, StepRunner, find_iteration_op

Values = Dict[str, Value]  # of tensors, by tag
Progress = Union[Tensor, str, float, None]  # a tensor, its name, or a number

tf = tf_api.tf


class NpuEmptyHook(tf_api.SessionRunHook):
    """A hook that does nothing. It replaces a hook that the NPU does not need."""


class NPUCheckpointSaverHook(tf_api.v1.train.CheckpointSaverHook):
    """A CheckpointSaverHook that also logs the global step of every run."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Save at the interval, and log the step."""
        super().after_run(run_context, run_values)
        tf_api.logging.info("npu_shim: global step %s", run_values.results)


class SetIterationsVarHook(tf_api.SessionRunHook):
    """Make each run of the op named ``IterationOp`` do N training steps.

    ``train_op = tf.group(train_op, name="IterationOp")`` in the script, this
    hook, and the session option iterations_per_loop=N belong together. Hooks
    then see one run for N steps: global_step increases by N, and values are
    those of the last step. The NPU loops on the device. On the CPU, a loop in
    the graph makes the steps before the last.

    Args:
        iterations_per_loop: N, at least 1.
        op: the op whose run stands for N steps; the one named IterationOp by default.
    Raises:
        TypeError, ValueError: if N is not an int of at least 1.
    """

    def __init__(self, iterations_per_loop: int | None = None, op: Operation | None = None) -> None:
        check_positive_int(iterations_per_loop, "iterations_per_loop")
        self._iterations = int(iterations_per_loop or 1)
        self._op = op
        self._runner: StepRunner | None = None

    def begin(self) -> None:
        """Create the loop and its variables before the graph is finalized."""
        self._load = loop_variables.Loader()
        if self._iterations == 1:
            return
        op = self._op or find_iteration_op(tf_api.v1.get_default_graph())
        if op is None:
            tf_api.logging.warning(
                "npu_shim: SetIterationsVarHook(%d) finds no op named %s, so each run makes one step. Write "
                'train_op = tf.group(train_op, name="%s").',
                self._iterations,
                ITERATION_OP,
                ITERATION_OP,
            )
            return
        self._runner = StepRunner(op)
        self._runner.iterations = self._iterations

    def after_create_session(self, session: Session, coord: object) -> None:
        """Set N in a new session."""
        self._load.load(session, self._iterations)

    def before_run(self, run_context: SessionRunContext) -> None:
        """Make the first N - 1 steps.

        Raises:
            ValueError: if the steps read a placeholder that this run does not feed.
        """
        session, (fetches, feed_dict, _) = run_context.session, run_context.original_args
        if self._runner is None or not self._runner.makes_several_steps(session, fetches):
            return
        unfed = self._runner.missing_feeds(session, feed_dict)
        if unfed:
            raise ValueError(
                f"iterations_per_loop={self._iterations}: the training step reads {', '.join(unfed)}, which this run "
                "does not feed. Read the input from a tf.data iterator, or use iterations_per_loop=1."
            )
        self._runner.run_first_steps(session, fetches, feed_dict, session.run)


class NPUOutputTensorHook(tf_api.v1.train.LoggingTensorHook):
    """Collect the values of tensors and pass them to a function.

    Args:
        tensors: dict from tag to tensor (or tensor name), or a list of tensors.
        dependencies: ops that must run before the tensors are read.
        output_fn: called with a list of dicts, one for each step since the last call.
        output_every_n_steps: number of steps between calls; 0 for one call at the end.
    Raises:
        ValueError: for no tensors, or a negative number of steps.
    """

    def __init__(
        self,
        tensors: dict[str, Tensor | str] | list[Tensor | str],
        dependencies: Structure | None = None,
        output_fn: Callable[[list[Values]], object] | None = None,
        output_every_n_steps: int = 0,
    ) -> None:
        if not tensors:
            raise ValueError(f"tensors={tensors!r} is not allowed: give at least one tensor.")
        if output_every_n_steps < 0:
            raise ValueError(f"output_every_n_steps={output_every_n_steps} is not allowed: it must be 0 or more.")
        super().__init__(tensors, every_n_iter=max(1, output_every_n_steps))
        self._wanted = dict(tensors) if isinstance(tensors, dict) else {getattr(t, "name", t): t for t in tensors}
        self._dependencies = dependencies
        self._output_fn = output_fn
        self._every = output_every_n_steps
        self._collected: list[Values] = []

    def begin(self) -> None:
        graph = tf_api.v1.get_default_graph()
        tensors = {k: graph.as_graph_element(t, allow_operation=False) for k, t in self._wanted.items()}
        before = [] if self._dependencies is None else tf.nest.flatten(self._dependencies)
        with tf.control_dependencies(before):
            self._fetches = {k: tf.identity(t) for k, t in tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return tf_api.v1.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._collected.append(run_values.results)
        if self._every and len(self._collected) >= self._every:
            self._call_output_fn()

    def end(self, session: Session) -> None:
        self._call_output_fn()

    def _call_output_fn(self) -> None:
        collected, self._collected = self._collected, []
        if collected and self._output_fn is not None:
            self._output_fn(collected)


class TellMeStepOrLossHook(tf_api.SessionRunHook):
    """Write the progress to environment variables for accelerated training.

    Sets STEP_NOW and TOTAL_STEP, or LOSS_NOW and TARGET_LOSS, after every run.

    Args:
        step, loss: tensor or tensor name of the current value.
        total_step, final_loss: tensor, tensor name or number of the goal.
    Raises:
        ValueError: if neither step nor loss is given.
    """

    def __init__(
        self, step: Progress = None, total_step: Progress = None, loss: Progress = None, final_loss: Progress = None
    ) -> None:
        if step is None and loss is None:
            raise ValueError("TellMeStepOrLossHook needs step (with total_step) or loss (with final_loss).")
        given = {"STEP_NOW": step, "TOTAL_STEP": total_step, "LOSS_NOW": loss, "TARGET_LOSS": final_loss}
        self._given = {name: value for name, value in given.items() if value is not None}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        fetched = {n: v for n, v in self._given.items() if not isinstance(v, (int, float))}
        return tf_api.v1.train.SessionRunArgs(fetched)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        for name, value in {**self._given, **run_values.results}.items():
            host_env.process_environ()[name] = str(value)
