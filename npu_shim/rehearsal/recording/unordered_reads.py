"""Find the fetches of a session whose value is left to chance: two runs of one script may return different ones.

``sess.run([train_op, weight])`` reads a variable and updates it in one step. Where no op orders the two, as with
resource variables, the value is the one before the update or after it. The global step that hooks of TensorFlow fetch
for themselves is such a read, too, and other hooks, which a migration brings, fetch it at other steps.

A variable that is no resource is written in place. ``sess.run([critic, generator])`` then computes the loss of one
update before or after the other update, and a rate that follows from the global step is that of this step or the next
one if the script itself assigns the step.
"""

from __future__ import annotations

import re
import weakref
from typing import Callable, Iterable, Iterator, Sequence

from npu_shim._tensorflow import tf_graph, tf_recording
from npu_shim._tensorflow.types import Fetches, Graph, Operation, Tensor
from npu_shim.rehearsal.recording.names import single_fetches

_VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_IN_PLACE = frozenset({"VariableV2", "Variable"})
_UPDATE = re.compile(r"Assign|(Resource)?(Sparse)?Apply|(Resource)?Scatter")
_MOST_OPS = 50  # above a fetch that is little more than a variable; others come from the step and its inputs


class UnorderedReads:
    """The fetches of runs that read variables which the same run updates, found once for each graph and set of ops."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Graph, dict[frozenset[str], frozenset[str]]] = (
            weakref.WeakKeyDictionary()
        )

    def are_unordered(self, graph: Graph, fetches: Sequence[Fetches]) -> list[bool]:
        """Return for each fetch if its value is left to chance.

        Args:
            graph: of the session.
            fetches: all tensors, operations and variables that one run fetches, without their structure.
        """
        ops = [tf_recording.fetched_op(graph, fetch) for fetch in fetches]
        own = {op.name: op for op in ops if op is not None}
        known, key = self._known.setdefault(graph, {}), frozenset(own)
        if key not in known:
            known[key] = frozenset(_racing_updates(own))
        of_hooks = tf_recording.global_step_read_ops(graph)
        return [op is not None and (op.name in known[key] or op in of_hooks) for op in ops]


class Races:
    """Runs in which an update writes a variable while another op computes with it, found once for each set of ops.

    In a large graph the search takes seconds.

    Args:
        note: called with the update.
    """

    def __init__(self, note: Callable[[Operation], None]) -> None:
        self._note = note
        self._known: set[frozenset[Operation]] = set()

    def look_for_race(self, graph: Graph, fetches: Fetches) -> None:
        """Look for a race in a run of a graph, before it: a run may end the process."""
        fetched = (tf_recording.fetched_op(graph, fetch) for fetch in single_fetches(fetches))
        ops = frozenset(op for op in fetched if op is not None)
        if ops not in self._known:
            self._known.add(ops)
            update = racing_update(ops)
            if update is not None:
                self._note(update)


def racing_update(fetches: Iterable[Operation]) -> Operation | None:
    """Return an update that writes a variable in place while the run computes with it, or None."""
    above: dict[Operation, list[Operation]] = {}  # TensorFlow 1 makes the list of control inputs anew each time
    run = tf_graph.reachable_nodes(fetches, lambda op: above.setdefault(op, tf_graph.input_and_control_ops(op)))
    optimizers: dict[Operation, list[Operation]] = {}  # the updates of one wait for the same gradients
    below: dict[Operation, list[Operation]] = {}
    for op in run:
        for other in above[op]:
            below.setdefault(other, []).append(op)
        if _UPDATE.match(op.type) and op.inputs and op.inputs[0].op.type in _IN_PLACE:
            waits = frozenset(above[op]) - {tensor.op for tensor in op.inputs}
            optimizers.setdefault(waits or op, []).append(op)
    for updates in optimizers.values():
        ordered = {
            **tf_graph.reachable_nodes(updates, above.__getitem__),
            **tf_graph.reachable_nodes(updates, lambda op: below.get(op, ())),
        }
        for update in updates:
            if any(user in run and user not in ordered for user in _ops_using_variable(update.inputs[0])):
                return update
    return None


def _ops_using_variable(variable: Tensor) -> Iterator[Operation]:
    """Yield the ops that compute with the memory of a variable."""
    for op in variable.consumers():
        if op.type == "Identity":
            yield from op.outputs[0].consumers()
        elif not _UPDATE.match(op.type):
            yield op


def _racing_updates(ops: dict[str, Operation]) -> Iterator[str]:
    reads = {name: list(_reads_of_variables(op)) for name, op in ops.items()}
    variables = {variable for pairs in reads.values() for _, variable in pairs}
    if not variables:
        return
    updates: dict[Operation, dict[Operation, dict[Operation, None]]] = {}  # by variable and update, what this waits for
    for op in _ops_waited_for(ops.values()):
        if _UPDATE.match(op.type):
            for tensor in op.inputs:
                if tensor.op in variables:
                    updates.setdefault(tensor.op, {})[op] = _ops_waited_for([op])
    for name, pairs in reads.items():
        if any(
            read not in above and update not in _ops_waited_for([read])
            for read, variable in pairs
            for update, above in updates.get(variable, {}).items()
        ):
            yield name


def _reads_of_variables(fetch: Operation) -> Iterator[tuple[Operation, Operation]]:
    """Yield each op above a fetch that reads a variable, with the variable; nothing if there are many ops."""
    above = _ops_waited_for([fetch], _MOST_OPS)
    if len(above) < _MOST_OPS:
        for op in above:
            for tensor in op.inputs:
                if tensor.op.type in _VARIABLES and not _UPDATE.match(op.type):
                    yield op, tensor.op


def _ops_waited_for(ops: Iterable[Operation], most: int | None = None) -> dict[Operation, None]:
    """Return, as keys, some ops and all that they wait for, or the first of these."""
    return tf_graph.reachable_nodes(ops, tf_graph.input_and_control_ops, most)
