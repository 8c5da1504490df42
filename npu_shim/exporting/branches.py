"""Branches of a graph whose predicate is known: the other side goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.nodes import CONTROL, by_name, constant_value, data_inputs, set_constant, set_identity, split

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import GraphDef

tf = tf_api.tf
_SWITCHES, _MERGES = ("Switch", "RefSwitch"), ("Merge", "RefMerge")


def without_dead_branches(graph: GraphDef) -> None:
    """Replace Switch and Merge with a constant predicate, in place."""
    nodes = by_name(graph)
    known = {node.name: _known(nodes, node.input[1]) for node in graph.node if node.op in _SWITCHES}
    sides = {name: side for name, side in known.items() if side is not None}
    if not sides:
        return
    dead = _dead(graph, sides)
    for node in graph.node:
        if node.op in _MERGES and (node.name, CONTROL) not in dead:
            alive = [number for number, each in enumerate(data_inputs(node)) if not _in(split(each), dead)]
            if len(alive) == 1 and len(data_inputs(node)) > 1:
                _use(graph, node, alive[0])
    for name in sides:
        dtype = tf.as_dtype(nodes[name].attr["T"].type).base_dtype
        set_identity(nodes[name], nodes[name].input[0], dtype)
    for node in graph.node:  # the side of a switch that lives is output 0 or 1
        node.input[:] = [
            split(each)[0] if split(each)[0] in sides and split(each)[1] == 1 else each for each in node.input
        ]


def _use(graph: GraphDef, merge: Any, number: int) -> None:
    name, chosen = merge.name, merge.input[number]
    for node in graph.node:
        if f"{name}:1" in node.input:
            index = graph.node.add(name=f"{name}/value_index")
            set_constant(index, number, tf.int32)
            for other in graph.node:
                other.input[:] = [index.name if each == f"{name}:1" else each for each in other.input]
            break
    set_identity(merge, chosen, tf.as_dtype(merge.attr["T"].type).base_dtype)


def _dead(graph: GraphDef, sides: dict[str, bool]) -> set[tuple[str, int]]:
    """Return the tensors that never have a value; index CONTROL stands for a node that does not run."""
    dead = {(name, 0 if side else 1) for name, side in sides.items()}
    more = True
    while more:
        more = False
        for node in graph.node:
            if (node.name, CONTROL) in dead:
                continue
            inputs = [split(each) for each in data_inputs(node)]
            states = [_in(key, dead) for key in inputs]
            controls = [(each[1:], CONTROL) in dead for each in node.input if each.startswith("^")]
            if any(controls) or (all(states) and states if node.op in _MERGES else any(states)):
                dead.add((node.name, CONTROL))
                more = True
    return dead


def _in(key: tuple[str, int], dead: set[tuple[str, int]]) -> bool:
    return key in dead or (key[0], CONTROL) in dead


def _known(nodes: dict[str, Any], name: str) -> bool | None:
    """Return the value of a bool tensor, None if it is not known."""
    node = nodes.get(split(name)[0])
    if node is None:
        return None
    if node.op == "Const":
        return bool(constant_value(node))
    if node.op in ("Identity", "Switch", "RefIdentity", "PlaceholderWithDefault", "StopGradient", "Squeeze", "Cast"):
        return _known(nodes, node.input[0])
    if node.op == "LogicalNot":
        value = _known(nodes, node.input[0])
        return None if value is None else not value
    if node.op in ("LogicalAnd", "LogicalOr"):
        values = [_known(nodes, each) for each in data_inputs(node)]
        decides = node.op == "LogicalOr"
        return decides if decides in values else None if None in values else not decides
    return None
