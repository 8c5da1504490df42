"""Memory of a step by liveness: a tensor lives from the node that makes it to the last one that reads it."""

from __future__ import annotations

import collections
from typing import Counter, NamedTuple, Sequence

from npu_shim._tensorflow.op_types import LOOPS, VARIABLES
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.op_types import op_types_in_table
from npu_shim.rehearsal.assess.sizes import size_bytes

_VIEWS = op_types_in_table("keeps its input's buffer")
_IN_PLACE = op_types_in_table("writes into its input's buffer")  # if nothing else needs it
_NONE = VARIABLES | LOOPS | {"Const", "AssignVariableOp", "Assign"}
_CHEAP = _VIEWS | _NONE | {"NoOp", "Shape", "Size", "Rank", "BroadcastGradientArgs", "Placeholder", "IteratorGetNext"}
_PUSH = frozenset({"TensorListPushBack", "StackPushV2", "TensorListSetItem"})


class Memory(NamedTuple):
    """Memory of a step.

    Attributes:
        peak: bytes of tensors that live at the same time, without variables and constants.
        at: name of the node at the peak.
        unknown: number of tensors of unknown size, which count nothing.
        largest: names and bytes of the largest tensors that live at the peak.
        unknown_nodes: places of the nodes that make the tensors of unknown size, one for each tensor.
    """

    peak: int
    at: str
    unknown: int
    largest: list[tuple[str, int]]
    unknown_nodes: list[int]


def peak_memory(nodes: Sequence[Node], trips: dict[str, int]) -> Memory:
    """Return the peak of a step that runs its nodes in the order of execution_order().

    Args:
        nodes: of the step.
        trips: how often each loop runs, by its name. What a loop keeps for the gradient counts as often.
    """
    readers = _reader_counts(nodes)
    buffer_of: dict[tuple[int, int], int] = {}
    size: list[int] = []
    count: list[int] = []  # tensors that are still to be read from a buffer
    names: list[str] = []
    live, best = 0, 0
    unknown: list[int] = []
    place = ""
    alive: dict[int, None] = {}
    at_best: list[int] = []
    for i in execution_order(nodes):
        node = nodes[i]
        freed_later = []
        for output in range(len(node.dtypes)):
            source = _shared_buffer(node, output, nodes, buffer_of, count)
            if source is not None:
                count[source] += readers[i, output]
                buffer_of[i, output] = source
                continue
            own_size = _output_bytes(node, output, nodes, trips)
            unknown += [i] if own_size is None else []
            buffer_of[i, output] = len(size)
            size.append(own_size or 0)
            count.append(readers[i, output])
            names.append(node.name)
            live += size[-1]
            alive[len(size) - 1] = None
            if not readers[i, output]:
                freed_later.append(len(size) - 1)
        if live > best:
            best, place, at_best = live, node.name, list(alive)
        for key in node.inputs:
            if key in buffer_of:
                count[buffer_of[key]] -= 1
                if count[buffer_of[key]] == 0:
                    freed_later.append(buffer_of[key])
        for buffer in freed_later:
            if buffer in alive and count[buffer] <= 0:
                live -= size[buffer]
                del alive[buffer]
    largest = sorted(((size[b], names[b]) for b in at_best), reverse=True)[:5]
    return Memory(best, place, len(unknown), [(name, number) for number, name in largest if number], unknown)


def _reader_counts(nodes: Sequence[Node]) -> Counter[tuple[int, int]]:
    return collections.Counter(key for node in nodes for key in node.inputs)


def _shared_buffer(
    node: Node, output: int, nodes: Sequence[Node], buffer_of: dict[tuple[int, int], int], count: Sequence[int]
) -> int | None:
    """Return the buffer of an input that an output lives in, or None if it has a buffer of its own."""
    if node.op in _PUSH or node.op == "VarHandleOp" or not node.inputs:
        return None
    if node.op in _VIEWS:
        key = node.inputs[min(output, len(node.inputs) - 1) if node.op == "IdentityN" else 0]
        return buffer_of.get(key)
    if node.op not in _IN_PLACE:
        return None
    for source, index in node.inputs:
        same = nodes[source].shapes[index] == node.shapes[output] and nodes[source].dtypes[index] == node.dtypes[output]
        buffer = buffer_of.get((source, index))
        if same and buffer is not None and count[buffer] == 1 and nodes[source].op not in _NONE:
            if nodes[source].op != "ReadVariableOp":
                return buffer
    return None


def _output_bytes(node: Node, output: int, nodes: Sequence[Node], trips: dict[str, int]) -> int | None:
    if node.op in _NONE or node.op == "BroadcastGradientArgs" or node.references[output : output + 1] == [True]:
        return 0
    if node.op in _PUSH:
        source, index = node.inputs[-1]
        element_bytes = size_bytes(nodes[source].dtypes[index], nodes[source].shapes[index])
        return None if element_bytes is None else element_bytes * trips.get(node.inside, 1)
    return size_bytes(node.dtypes[output], node.shapes[output])


def execution_order(nodes: Sequence[Node]) -> list[int]:
    """Return the nodes in the order of TensorFlow's executor with one thread.

    Nodes that compute nothing run as soon as they are ready, in turn. Of the others, the newest one runs next.
    """
    before = [
        {source for source, _ in node.inputs if nodes[source].op != "NextIteration"} | set(node.controls)
        for node in nodes
    ]
    left = [len(sources) for sources in before]
    after: list[list[int]] = [[] for _ in nodes]
    for i, sources in enumerate(before):
        for source in sources:
            after[source].append(i)
    cheap: collections.deque[int] = collections.deque()
    others: list[int] = []

    def add_ready_nodes(ready: Sequence[int]) -> None:
        cheap.extend(i for i in ready if nodes[i].op in _CHEAP)
        others.extend(i for i in ready if nodes[i].op not in _CHEAP)

    add_ready_nodes([i for i in range(len(nodes)) if not left[i]])
    ordered = []
    while cheap or others:
        i = cheap.popleft() if cheap else others.pop()
        ordered.append(i)
        for other in after[i]:
            left[other] -= 1
        add_ready_nodes([other for other in after[i] if not left[other]])
    return ordered
