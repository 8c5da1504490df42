"""Numbers of a graph that follow from its constants: rates, masks, predicates."""

from __future__ import annotations

import re

import numpy as np

from npu_shim._tensorflow.types import GraphDef, Message, Value
from npu_shim.exporting.graph_defs import (
    attribute_or_default,
    constant_value,
    data_inputs,
    nodes_by_name,
    split_tensor_name,
)

_UNIFORM = re.compile(r"(Stateless)?RandomUniform(V2)?$")
_DRAWN = (np.arange(20_000) + 0.5) / 20_000  # all that may be drawn
_PASS = re.compile(
    r"((Ref)?(Identity|Enter|Switch)|(Stop|Prevent)Gradient|Cast|Reshape|Squeeze|ExpandDims|BroadcastTo|CheckNumerics"
    r"|PlaceholderWithDefault)$"
)
_NUMPY = (
    "Add:add AddV2:add Sub:subtract Mul:multiply RealDiv:divide Div:divide DivNoNan:divide Reciprocal:reciprocal "
    "Floor:floor GreaterEqual:greater_equal Greater:greater Less:less LessEqual:less_equal LogicalNot:logical_not "
    "LogicalAnd:logical_and LogicalOr:logical_or"
)
_FUNCTIONS = {op: getattr(np, name) for op, name in (pair.split(":") for pair in _NUMPY.split())}


def constant_numbers(graph: GraphDef, fed_value: float | None = None) -> dict[str, Value]:
    """Return the number that all elements of a result are, by the name of its node, where constants tell.

    What depends on random numbers is an array, with an element for each number that may be drawn.

    Args:
        graph: the nodes.
        fed_value: the value of numbers that are fed, such as keep_prob.
    """
    nodes, before = nodes_by_name(graph), -1
    known: dict[str, Value] = {}
    while before != len(known):
        before = len(known)
        for node in graph.node:
            value = None if node.name in known else _number_of_node(nodes, node, known, fed_value)
            if value is not None:
                known[node.name] = value
    return known


def _number_of_node(
    nodes: dict[str, Message], node: Message, numbers: dict[str, Value], fed_value: float | None
) -> Value:
    inputs = [split_tensor_name(name)[0] for name in data_inputs(node)]
    values: list[Value] = [numbers.get(name) for name in inputs]
    if _PASS.match(node.op) or node.op == "Merge" and _is_loop_invariant(nodes, node):
        return values[0]
    if node.op in ("Fill", "ZerosLike"):
        return (*values, 0.0)[1]
    if _UNIFORM.match(node.op):
        return _DRAWN
    if node.op == "Const":
        elements = constant_value(node).reshape(-1)
        is_one = elements.size and elements.dtype != object and (elements == elements[0]).all()
        return float(elements[0]) if is_one else None
    if node.op == "StridedSlice" and nodes[inputs[0]].op == "Placeholder" and fed_value:  # such as keep_prob[0]
        is_element = values[1] is not None and attribute_or_default(node, "shrink_axis_mask") == 1
        return fed_value / (1 + abs(values[1])) if is_element else None
    if node.op.startswith("Placeholder"):
        return fed_value if "shape" in node.attr and not node.attr["shape"].shape.dim else None
    decides = float(node.op == "LogicalOr")
    if node.op in ("LogicalAnd", "LogicalOr") and decides in [value for value in values if np.ndim(value) == 0]:
        return decides
    if node.op not in _FUNCTIONS or any(value is None for value in values):
        return None
    with np.errstate(all="ignore"):
        return _FUNCTIONS[node.op](*values)


def _is_loop_invariant(nodes: dict[str, Message], merge: Message) -> bool:
    """Return True for a value of a loop that each step hands on as it is."""
    begin, back = (nodes[split_tensor_name(tensor)[0]] for tensor in merge.input[:2])
    while back.op in ("NextIteration", "Identity", "Switch"):
        back = nodes[split_tensor_name(back.input[0])[0]]
    return begin.op == "Enter" and back.name == merge.name
