"""Count the steps of sessions, and read the loss and the learning rate with what the script fetches.

A run that makes an update also fetches the global step, the loss and the learning rates of the update, if they are
wanted. They are tensors that the graph has, and only those that the run computes anyway: nothing is added to the graph.
"""

from __future__ import annotations

from typing import Container, NamedTuple

import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_graph, tf_recording, tf_session
from npu_shim._tensorflow.types import Fetches, Function, Graph, Operation, Result, Session, Tensor, Value, Variable
from npu_shim.rehearsal.progress.counted_updates import updates_in_graph
from npu_shim.rehearsal.progress.progress import Progress
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.kinds import FETCH, SUMMARY
from npu_shim.rehearsal.recording.names import fetch_name, fetches_with_values, single_fetches
from npu_shim.rehearsal.recording.summaries import scalars_of

_READS = ("ReadVariableOp", "VarHandleOp", "VariableV2", "Variable")
_FIRST_READS = 3  # runs that read the global step in any case
_MAX_PLANS = 100  # sets of fetches that are remembered for a graph
_PLANS = "npu_shim_plans"  # attribute of a graph, so that they end with it


class _Plan(NamedTuple):
    """The use of a set of fetches.

    Attributes:
        fetches: the fetched ops and tensors; they are kept, so that their ids stay theirs.
        numbers: of the optimizers whose updates the run makes.
        shown: kind, name and tensor of what is fetched in addition.
        step: the global step, which is fetched too; None if there is none.
    """

    fetches: tuple[Fetches, ...]
    numbers: tuple[int, ...] = ()
    shown: tuple[tuple[str, str, Tensor], ...] = ()
    step: Variable | None = None


_NOTHING = _Plan(())


class Sessions:
    """The sessions of this process.

    Args:
        progress: counts.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        # As another set of fetches would compile the graph again.
        self._fetches_always = host_device.detect_without_import().is_npu
        self._reads = self._runs = 0  # of the global step, and of training steps since the last one
        self._global_step: int | None = None
        self._per_run = 1

    def watch_sessions(self) -> None:
        """Watch the runs of all sessions of this process."""
        methods.wrap_methods(tf_recording.BaseSession, ("run",), self._run_and_count)

    def _run_and_count(
        self, original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
    ) -> Result:
        progress = self._progress
        if progress.is_inside("run", "evaluate", "predict"):
            return original(session, fetches, *args, **kwargs)
        plan = self._plan_of_fetches(session, fetches)
        if plan is _NOTHING:
            return original(session, fetches, *args, **kwargs)
        wanted = progress.is_due() or bool(plan.numbers) and self._reads < _FIRST_READS
        with progress.inside("run"):
            if not plan.numbers or not (wanted or self._fetches_always):
                result, more = original(session, fetches, *args, **kwargs), []
            else:
                extra = [tensor for _, _, tensor in plan.shown] + ([] if plan.step is None else [plan.step])
                result, more = original(session, [fetches, extra], *args, **kwargs)
        if plan.numbers:
            self._count_steps(plan, more)
        if wanted:
            self._show_values(plan, more, fetches, result)
        return result

    def _count_steps(self, plan: _Plan, extra_values: list[Value]) -> None:
        for number in plan.numbers[1:]:
            self._progress.count_steps(number)
        self._runs += 1
        if plan.step is None or not extra_values:
            self._progress.count_steps(plan.numbers[0], self._per_run)
            return
        step = int(extra_values[-1])
        counted = self._progress.steps_of_source(plan.numbers[0])
        expected = counted + self._per_run
        if abs(step - expected) <= self._per_run or step == self._global_step:
            # The variable may be read before or after the update, and some scripts do not count in it.
            self._progress.set_step_count(plan.numbers[0], expected)
        else:
            if self._global_step is not None and step > self._global_step:
                self._per_run = max(1, round((step - self._global_step) / self._runs))
            self._progress.set_step_count(plan.numbers[0], step)
        self._global_step = step
        self._reads += 1
        self._runs = 0

    def _show_values(self, plan: _Plan, extra_values: list[Value], fetches: Fetches, result: Result) -> None:
        progress = self._progress
        for (kind, name, _), value in zip(plan.shown, extra_values):
            progress.record_values(kind, [(name, value)])
        for fetch, value in fetches_with_values(fetches, result):
            if isinstance(value, bytes):
                if isinstance(fetch, tf.Tensor) and tf_recording.is_summary_op(fetch.op):
                    progress.record_values(SUMMARY, scalars_of(value))
            elif value is not None:
                progress.record_values(FETCH, [(fetch_name(fetch), value)])

    def _plan_of_fetches(self, session: Session, fetches: Fetches) -> _Plan:
        updates = updates_in_graph(session.graph)
        if not updates:
            return _NOTHING
        leaves = tuple(single_fetches(fetches))
        key = tuple(map(id, leaves)) + (len(updates),)
        plans: dict[tuple[int, ...], _Plan] = getattr(session.graph, _PLANS, None) or {}
        plan = plans.get(key)
        if plan is None:
            if len(plans) >= _MAX_PLANS:
                plans.clear()
            plan = plans[key] = self._make_plan(session, fetches, leaves, updates)
            setattr(session.graph, _PLANS, plans)
        return plan

    def _make_plan(
        self, session: Session, fetches: Fetches, leaves: tuple[Fetches, ...], updates: list[Operation]
    ) -> _Plan:
        elements = tf_session.fetched_elements(session, fetches)
        runs = tf_graph.ops_with_ancestors(
            [element.op if isinstance(element, tf.Tensor) else element for element in elements]
        )
        run_updates = [update for update in updates if any(op in runs for op in update.ops)]
        shown: dict[tuple[str, str], Tensor] = {}
        for update in run_updates:
            mark = f" of optimizer {update.number + 1}" if update.number else ""
            for kind, name, tensor in update.shown:
                if _is_computed(tensor.op, runs) and session.graph.is_fetchable(tensor):
                    shown[kind, name + mark] = tensor
        numbers = tuple(sorted({update.number for update in run_updates}))
        return _Plan(leaves, numbers, tuple((*key, value) for key, value in shown.items()), _global_step(session.graph))


def _is_computed(op: Operation, runs: Container[Operation]) -> bool:
    """Return True if a run computes an op, but for stateless ops and reads of variables."""
    waiting, seen = [op], set()
    while waiting:
        ancestor = waiting.pop()
        if ancestor in runs or ancestor in seen:
            continue
        seen.add(ancestor)
        stateful = ancestor.op_def is not None and ancestor.op_def.is_stateful and ancestor.type not in _READS
        if stateful or ancestor.type.startswith("Placeholder"):
            return False
        waiting += [tensor.op for tensor in ancestor.inputs] + list(ancestor.control_inputs)
    return True


def _global_step(graph: Graph) -> Variable:
    """Return the tensor of the global step of a graph; None if it has none."""
    steps = graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_STEP)
    return tf_recording.variable_graph_element(steps[0]) if len(steps) == 1 else None
