"""Find the fetches of a session whose value is left to chance: two runs of one script may return different ones.

``sess.run([train_op, weight])`` reads a variable and updates it in one step. Where no op orders the two, as with
resource variables, the value is the one before the update or after it. The global step that hooks of TensorFlow fetch
for themselves is such a read, too, and other hooks, which a migration brings, fetch it at other steps.
"""

from __future__ import annotations

import re
import weakref
from typing import Iterable, Iterator, Sequence

from npu_shim._tensorflow import tf_graph, tf_recording
from npu_shim._tensorflow.op_types import VARIABLES
from npu_shim._tensorflow.types import Fetches, Graph, Operation

UPDATE = re.compile(r"Assign|(Resource)?(Sparse)?Apply|(Resource)?Scatter")
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
            known[key] = frozenset(_names_of_racing_ops(own))
        of_hooks = tf_recording.global_step_read_ops(graph)
        return [op is not None and (op.name in known[key] or op in of_hooks) for op in ops]


def _names_of_racing_ops(ops: dict[str, Operation]) -> Iterator[str]:
    reads = {name: list(_reads_of_variables(op)) for name, op in ops.items()}
    variables = {variable for pairs in reads.values() for _, variable in pairs}
    if not variables:
        return
    updates: dict[Operation, dict[Operation, dict[Operation, None]]] = {}  # by variable and update, what this waits for
    for op in _ops_waited_for(ops.values()):
        if UPDATE.match(op.type):
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
                if tensor.op.type in VARIABLES and not UPDATE.match(op.type):
                    yield op, tensor.op


def _ops_waited_for(ops: Iterable[Operation], most: int | None = None) -> dict[Operation, None]:
    """Return, as keys, some ops and all that they wait for, or the first of these."""
    return tf_graph.reachable_nodes(ops, tf_graph.input_and_control_ops, most)
