"""Find updates that write a variable while other ops of the same run compute with it, and order the two.

``sess.run([critic, generator])`` computes the loss of one update before or after the other update, and a rate that
follows from the global step is that of this step or of the next one if the script itself assigns the step. Where no op
orders the two, control edges from the reads to the update do. They are added before a session has the update, because
it takes no changes of ops that it has. So one run finds the races, and the next one is ordered by their names.
"""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass, field
from typing import Callable, Iterable, Iterator, Mapping, Sequence

from npu_shim._tensorflow import tf_graph, tf_recording
from npu_shim._tensorflow.op_types import VARIABLES
from npu_shim._tensorflow.types import Fetches, Graph, Operation
from npu_shim.rehearsal.recording.names import single_fetches
from npu_shim.rehearsal.recording.settings import Race
from npu_shim.rehearsal.recording.unordered_reads import UPDATE

# Their output may be the memory of their input, which is read later.
_SAME_MEMORY = re.compile(
    r"(Ref)?(Identity|Switch|Merge|Enter|Exit|NextIteration)$|IdentityN|Reshape|ExpandDims|Squeeze|StopGradient"
    r"|PreventGradient|Snapshot|Bitcast|(Strided)?Slice$|Split|Unpack"
)
_INITIALIZED = ("IsVariableInitialized", "VarIsInitializedOp")  # they read no value
_WITHOUT_EFFECT = re.compile(r"ReadVariableOp|ResourceGather")  # although they are stateful
_SWITCHES, _JOINS = ("Switch", "RefSwitch"), ("Merge", "RefMerge", "Exit", "RefExit")


class Races:
    """The races in the runs of sessions, found once for each set of fetches.

    Args:
        note: called with all races so far when there is a new one.
    """

    def __init__(self, note: Callable[[list[Race]], None]) -> None:
        self._note = note
        self._runs: dict[frozenset[Operation], _RunOps] = {}

    def look_for_races(self, graph: Graph, fetches: Fetches) -> None:
        """Look for races in a run of a graph, before it: a run may end the process.

        What hooks of TensorFlow read of the global step is left out. No value of it is recorded.
        """
        fetched = {tf_recording.fetched_op(graph, fetch) for fetch in single_fetches(fetches)}
        ops = frozenset(op for op in fetched.difference(tf_recording.global_step_read_ops(graph)) if op is not None)
        if ops not in self._runs:
            run = self._runs[ops] = _RunOps(graph, ops)
            updates = dict.fromkeys(update for known in self._runs.values() for update in known.reads)
            if any(update in run.above for update in updates):
                self._note([self._make_race(update) for update in updates])

    def _make_race(self, update: Operation) -> Race:
        runs = [run for run in self._runs.values() if update in run.above]
        waits = dict.fromkeys(op for run in runs for op in run.ops_to_wait_for(update))
        variable = _variable_of(update)
        read = next(op for run in runs for op in run.reads.get(update, ()))
        assert variable is not None
        return Race(
            variable.name,
            update.name,
            tf_recording.creation_line_of_op(update),
            read.name,
            tf_recording.creation_line_of_op(read),
            # An update brings the ops for which it waits into each of its runs.
            [op.name for op in waits if all(_is_without_effect(op, run.above) for run in runs)],
        )


@dataclass
class _RunOps:
    """The ops of a run.

    Attributes:
        above: each op, and the ops for which it waits.
        reads: each update that races, and the ops that compute with its variable.
    """

    graph: Graph
    fetched: Iterable[Operation]
    above: dict[Operation, list[Operation]] = field(default_factory=dict)
    reads: dict[Operation, list[Operation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # TensorFlow 1 makes the list of control inputs anew each time.
        tf_graph.reachable_nodes(self.fetched, lambda op: self.above.setdefault(op, tf_graph.input_and_control_ops(op)))
        order = [op for op in self.graph.get_operations() if op in self.above]
        variables = {op: _variable_of(op) for op in order if UPDATE.match(op.type)}
        self._bits = {op: 1 << number for number, op in enumerate(op for op, variable in variables.items() if variable)}
        self._below: dict[Operation, list[Operation]] = {}
        for op in order:
            for other in self.above[op]:
                self._below.setdefault(other, []).append(op)
        if not self._bits:
            return
        self._before = _updates_reached(order, self.above, self._bits)
        after = _updates_reached(order[::-1], self._below, self._bits)
        self._conditional: set[Operation] = set()  # a branch that is not taken runs none of them
        for op in order:
            if op.type not in _JOINS and any(
                other.type in _SWITCHES or other in self._conditional for other in self.above[op]
            ):
                self._conditional.add(op)
        for update, bit in self._bits.items():
            users = [
                op
                for op in dict.fromkeys(_ops_using_variable(variables[update]))
                if op in self.above and op is not update and not (self._before[op] | after[op]) & bit
            ]
            if users:
                self.reads[update] = users

    def ops_to_wait_for(self, update: Operation) -> list[Operation]:
        """Return the ops after which an update follows all that compute with its variable, as far as there are any.

        An op in a branch or a loop cannot be waited for outside, but what follows the branch or loop can.
        """
        contexts = tf_graph.contexts_around(update)

        def is_ready(op: Operation) -> bool:
            [context, *_] = tf_graph.contexts_around(op)
            return context in contexts and (
                op not in self._conditional or (context is not None and context is contexts[0])
            )

        waits: list[Operation] = []
        for user in self.reads.get(update, ()):
            ops = tf_graph.reachable_nodes([user], lambda op: () if is_ready(op) else self._below.get(op, ()))
            ready = [op for op in ops if is_ready(op)]
            if not any(op is update or self._before[op] & self._bits[update] for op in ready):
                waits += ready
        return list(dict.fromkeys(waits))


def order_races(
    graph: Graph, races: Sequence[Race], updates_by_graph: weakref.WeakKeyDictionary[Graph, set[str]]
) -> None:
    """Let the updates of races wait for the reads, where nothing orders them otherwise.

    Args:
        graph: of a session, before each of its runs.
        races: of an earlier run of the script.
        updates_by_graph: by graph, the names of the updates that sessions may have.
    """
    ops = {op.name: op for op in graph.get_operations()}
    new = [
        race for race in races if race.update in ops and race.update not in updates_by_graph.setdefault(graph, set())
    ]
    for race in new:
        update = ops[race.update]
        reads = [ops[name] for name in race.waits if name in ops]
        tf_graph.add_control_inputs(update, [op for op in reads if update not in tf_graph.ops_with_ancestors([op])])
        updates_by_graph[graph].add(race.update)


def _updates_reached(
    order: Sequence[Operation], neighbours: Mapping[Operation, Sequence[Operation]], bits: Mapping[Operation, int]
) -> dict[Operation, int]:
    """Return the updates, as bits, to which walks from each op lead.

    Args:
        order: of the ops. Those of loops, which have no order, take another pass.
        neighbours: of each op.
        bits: one bit for each update.
    """
    reached, has_changed = dict.fromkeys(order, 0), True
    while has_changed:
        has_changed = False
        for op in order:
            mask = 0
            for other in neighbours.get(op, ()):
                mask |= reached[other] | bits.get(other, 0)
            if mask != reached[op]:
                reached[op], has_changed = mask, True
    return reached


def _variable_of(update: Operation) -> Operation | None:
    """Return the variable that an update writes; None for ops that write none."""
    op = update
    while op.inputs and (op is update or _SAME_MEMORY.match(op.type)):
        op = op.inputs[0].op
    return op if op.type in VARIABLES else None


def _ops_using_variable(variable: Operation) -> Iterator[Operation]:
    """Yield the ops that compute with the value of a variable."""
    ops = tf_graph.reachable_nodes([variable], lambda op: _consumers(op) if _shares_memory(op) else ())
    for op in ops:
        if not _shares_memory(op) and not (UPDATE.match(op.type) and _variable_of(op) is variable):
            yield op


def _shares_memory(op: Operation) -> bool:
    return op.type in VARIABLES or bool(_SAME_MEMORY.match(op.type))


def _consumers(op: Operation) -> list[Operation]:
    return [user for tensor in op.outputs for user in tensor.consumers() if user.type not in _INITIALIZED]


def _is_without_effect(op: Operation, ops: Mapping[Operation, object]) -> bool:
    """Return True if an op adds nothing to a run but computing.

    Args:
        op: the op.
        ops: of the run.
    """
    new = tf_graph.reachable_nodes([op], lambda op: () if op in ops else tf_graph.input_and_control_ops(op))
    return not any(
        other.type.startswith("Placeholder")
        or (other.op_def.is_stateful and other.type not in VARIABLES and not _WITHOUT_EFFECT.match(other.type))
        for other in new
        if other not in ops
    )
