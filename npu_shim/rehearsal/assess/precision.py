"""Mixed precision: which operators of a step compute in 16 bits."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.op_types import REDUCTIONS, SOURCES
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.operators import DEVICE, UNCLEAR, Lists
from npu_shim.rehearsal.assess.sizes import element_count

_SAME = frozenset({"Identity", "ReadVariableOp", "Enter", "Exit", "Switch", "Merge", "NextIteration"})


def are_nodes_in_half(nodes: Sequence[Node], lists: Lists) -> list[bool]:
    """Return for each node whether mixed precision computes it in 16 bits.

    An operator of the list "reduce" does, one of "keep" does not. Any other follows the operator before it, which makes
    its first float32 input that is no constant, variable or input of the step.

    Args:
        nodes: of the step.
        lists: the operators of the device and the lists of mixed precision.
    """
    is_half: list[bool | None] = [None] * len(nodes)
    for start in range(len(nodes)):
        _resolve_is_half(start, nodes, lists, is_half)
    return [bool(value) for value in is_half]


def _resolve_is_half(start: int, nodes: Sequence[Node], lists: Lists, is_half: list[bool | None]) -> None:
    chain = []
    i: int | None = start
    while i is not None and is_half[i] is None:
        node = nodes[i]
        kind = "follow" if is_reduction_of_nothing(node, nodes) else lists.precision_rule(node.op)
        is_float = "float32" in node.dtypes
        if (
            node.op in SOURCES
            or not is_float
            or lists.device_status(node.op) not in (DEVICE, UNCLEAR)
            or kind != "follow"
        ):
            is_half[i] = kind == "reduce" and is_float and node.op not in SOURCES
            break
        is_half[i] = False  # for loops
        chain.append(i)
        i = _first_float_input(node, nodes)
    value = bool(is_half[i]) if i is not None else False
    for place in chain:
        is_half[place] = value


def is_reduction_of_nothing(node: Node, nodes: Sequence[Node]) -> bool:
    """Return True for a reduction over axes of one element alone, as gradients of sums have: TensorFlow removes it."""
    if node.op not in REDUCTIONS or not node.inputs:
        return False
    source, output = node.inputs[0]
    number = element_count(node.shapes[0])
    return number is not None and number == element_count(nodes[source].shapes[output])


def _first_float_input(node: Node, nodes: Sequence[Node]) -> int | None:
    for source, output in node.inputs:
        maker = nodes[source]
        if output and maker.op.startswith("FusedBatchNorm"):  # statistics stay in float32
            return None
        if maker.dtypes[output] == "float32" and maker.op not in SOURCES and not _is_copy_of_source(source, nodes):
            return source
    return None


def _is_copy_of_source(i: int, nodes: Sequence[Node]) -> bool:
    """Return True for a node that only hands on a constant, a variable or an input."""
    seen = set()
    while nodes[i].op in _SAME and nodes[i].inputs and i not in seen:
        seen.add(i)
        i = nodes[i].inputs[0][0]
    return nodes[i].op in SOURCES
