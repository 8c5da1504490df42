"""The branches of conditions that a step runs. Conditions of TensorFlow 1 are pairs of Switch and Merge."""

from __future__ import annotations

import collections
import copy
from typing import Iterator, NamedTuple, Sequence

from npu_shim._tensorflow.tf_api import tf, v1
from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.known_values import Key, LoopVariables, known_values

_SWITCHES, _MERGES, _BACK = ("Switch", "RefSwitch"), ("Merge", "RefMerge"), ("NextIteration", "RefNextIteration")
_LEAST = 0.01  # of all costs, by which the branches of a condition differ that is worth a word


class OneBranch(NamedTuple):
    """The nodes of a step with one branch of each condition.

    Attributes:
        nodes: those that run.
        places: of each among all nodes.
        unknown: the names of conditions whose branch the graph does not decide: the dearer one counts.
    """

    nodes: list[Node]
    places: list[int]
    unknown: list[str]


def nodes_with_one_branch(nodes: Sequence[Node], costs: Sequence[float]) -> OneBranch:
    """Return the nodes of a step with one branch of each condition: the one that is taken, else the dearer one.

    Args:
        nodes: of the step.
        costs: of each node, in any unit.
    """
    conditions = _Conditions(nodes)
    known = known_values(nodes, conditions.decided_by_graph())
    unknown, total = [], sum(costs)
    for predicate, places in conditions.places.items():
        if predicate in known:
            conditions.take(predicate, conditions.unused(predicate, conditions.number(predicate, known[predicate])))
            continue
        unused = [conditions.unused(predicate, number) for number in conditions.numbers(predicate)]
        saved = [sum(costs[place] for place in rest.nodes) for rest in unused]
        if max(saved) - min(saved) > _LEAST * total:
            unknown.append(nodes[places[0]].name)
        conditions.take(predicate, unused[saved.index(min(saved))])
    return conditions.rest(unknown)


class _Unused(NamedTuple):
    """The nodes and the outputs of switches that are not used if a branch is taken."""

    number: int
    nodes: set[int]
    outputs: set[Key]


class _Conditions:
    """The conditions of a step by their predicates.

    Attributes:
        places: of the nodes of conditions, by the tensor that decides them.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._unused = _Unused(0, set(), set())
        self._taken: dict[int, int] = {}  # the branch of each condition of TensorFlow 2
        self._members: dict[tuple[int, int], list[int]] = collections.defaultdict(list)
        self._readers: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)  # with the output; -1 to wait
        self.places: dict[Key, list[int]] = collections.defaultdict(list)
        for place, node in enumerate(nodes):
            for branch in node.branches:
                self._members[branch].append(place)
            for source, output in node.inputs:
                self._readers[source].append((place, output))
            for source in node.controls:
                if set(nodes[source].branches) <= set(node.branches):
                    self._readers[source].append((place, -1))
        conditions = {owner for owner, _ in self._members}
        for place, node in enumerate(nodes):
            key = node.inputs[0] if place in conditions else node.inputs[-1] if node.op in _SWITCHES else None
            while key is not None and nodes[key[0]].op == "Identity" and not nodes[key[0]].joins:
                key = nodes[key[0]].inputs[0] if nodes[key[0]].inputs else None
            if key is not None and nodes[key[0]].op != "LoopCond":
                self.places[key].append(place)

    def decided_by_graph(self) -> Iterator[Key]:
        """Yield the predicates that do not change in a loop."""
        variables = LoopVariables(self._nodes)
        for predicate, places in self.places.items():
            if not any(variables.are_read(self._nodes[place]) for place in places):
                yield predicate

    def number(self, predicate: Key, value: Value) -> int:
        """Return the number of the branch that a value of a predicate takes."""
        is_case = "Case" in self._nodes[self.places[predicate][0]].op
        numbers = self.numbers(predicate)
        return (int(value) if int(value) in numbers else numbers[-1]) if is_case else int(bool(value))

    def numbers(self, predicate: Key) -> list[int]:
        """Return the numbers of the branches of a predicate."""
        places = set(self.places[predicate])
        return sorted({0, 1} | {number for owner, number in self._members if owner in places})

    def take(self, predicate: Key, unused: _Unused) -> None:
        """Take a branch."""
        self._taken.update(dict.fromkeys(self.places[predicate], unused.number))
        self._unused.nodes.update(unused.nodes)
        self._unused.outputs.update(unused.outputs)

    def unused(self, predicate: Key, number: int) -> _Unused:
        """Return what does not run if a branch is taken."""
        result = _Unused(number, set(), set())
        waiting: list[int] = []
        for place in self.places[predicate]:
            if self._nodes[place].op in _SWITCHES:
                result.outputs.add((place, 1 - number))
                waiting += [reader for reader, output in self._readers[place] if output == 1 - number]
            else:
                others = [branch for branch in self._members if branch[0] == place and branch[1] != number]
                result.nodes.update(member for other in others for member in self._members[other])
        waiting += [reader for member in result.nodes for reader, _ in self._readers[member]]
        while waiting:
            place = waiting.pop()
            if place not in result.nodes and place not in self._unused.nodes and self._is_unreached(place, result):
                result.nodes.add(place)
                waiting += [reader for reader, _ in self._readers[place]]
        return result

    def _is_unreached(self, place: int, unused: _Unused) -> bool:
        """Return True if a node after something that does not run does not run. A merge needs one of its inputs."""
        node = self._nodes[place]
        if node.op not in _MERGES and not node.joins:
            return True
        return all(self._is_unused(key, unused) for key in node.inputs if self._nodes[key[0]].op not in _BACK)

    def _is_unused(self, key: Key, unused: _Unused) -> bool:
        return any(key[0] in rest.nodes or key in rest.outputs for rest in (unused, self._unused))

    def _set_one_input(self, place: int, node: Node) -> None:
        """Let a node hand on its input where it switches to a branch that is taken, or merges one."""
        is_join = node.op == "Merge" or node.joins is not None
        is_one = is_join and len(node.inputs) == 1 and all(output < 1 for _, output in self._readers[place])
        if is_one or node.op == "Switch" and place in self._taken:
            kind = tf.as_dtype(node.dtypes[0]).as_datatype_enum
            node.op, node.inputs, node.definition = "Identity", node.inputs[:1], v1.NodeDef(op="Identity")
            node.dtypes, node.references = node.dtypes[:1], node.references[:1]
            node.shapes, node.declared = node.shapes[:1], node.declared[:1]
            node.definition.attr["T"].type = kind

    def rest(self, unknown: list[str]) -> OneBranch:
        """Return the nodes that run."""
        places = [place for place in range(len(self._nodes)) if place not in self._unused.nodes]
        at = {place: number for number, place in enumerate(places)}
        nodes = []
        for place in places:
            node = copy.copy(self._nodes[place])
            keys = list(zip(node.inputs, node.joins[1] if node.joins else [None] * len(node.inputs)))
            taken = self._taken.get(node.joins[0]) if node.joins else None
            node.inputs = [
                (at[source], 0 if self._nodes[source].op == "Switch" and source in self._taken else output)
                for (source, output), number in keys
                if not self._is_unused((source, output), self._unused) and (number is None or number == taken)
            ]
            self._set_one_input(place, node)
            node.results = [(at[key[0]], key[1]) if key and key[0] in at else None for key in node.results]
            node.controls = [at[source] for source in node.controls if source in at]
            nodes.append(node)
        return OneBranch(nodes, places, unknown)
