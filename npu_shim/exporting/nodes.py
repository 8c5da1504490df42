"""Graph definitions as data: names of tensors, subgraphs, and consumers that get another tensor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from npu_shim._tensorflow import tf_api

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import DType, GraphDef, Message

tf = tf_api.tf
CONTROL = -1  # the index of a control input
NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_LOOPS_AND_BRANCHES = {"Switch", "RefSwitch", "Enter", "RefEnter"}
_ONLY_HERE = ("_class", "_output_shapes")  # attributes that name nodes outside of a subgraph, or repeat shapes


class ExportError(Exception):
    """Raised for a source that cannot be exported; the text says what to do."""


def split(name: str) -> tuple[str, int]:
    """Return node and index of a tensor ``a:1``, of an input ``a`` or of a control input ``^a``."""
    if name.startswith("^"):
        return name[1:], CONTROL
    node, colon, index = name.rpartition(":")
    return (node, int(index)) if colon and index.isdigit() else (name, 0)


def join(node: str, index: int = 0) -> str:
    """Return the input of a node, as a graph definition spells it."""
    return f"^{node}" if index == CONTROL else node if index == 0 else f"{node}:{index}"


def by_name(graph: GraphDef) -> dict[str, Any]:
    """Return the nodes of a graph by their names."""
    return {node.name: node for node in graph.node}


def data_inputs(node: Message) -> list[str]:
    """Return the inputs of a node without its control inputs."""
    return [each for each in node.input if not each.startswith("^")]


def subgraph(graph: GraphDef, outputs: Iterable[str], stop: Iterable[str] = ()) -> GraphDef:
    """Return the nodes that outputs need.

    Args:
        graph: with these outputs.
        outputs: names of tensors.
        stop: names of tensors that are given, so that what makes them is not needed.
    """
    nodes, given = by_name(graph), {key for each in stop for key in (split(each), (split(each)[0], CONTROL))}
    stack, found = [split(each) for each in outputs], set()
    has_branches = any(node.op in _LOOPS_AND_BRANCHES for node in graph.node)
    while stack:
        name, index = stack.pop()
        if name in found or (name, index) in given:
            continue
        if name not in nodes:
            raise ExportError(f"the graph has no node {name}. Choose a name that npu-shim export --list prints.")
        found.add(name)
        # without branches and loops, a control input orders updates and checks, which inference does not have
        stack += [split(each) for each in nodes[name].input if has_branches or not each.startswith("^")]
    made = tf_api.GraphDef(versions=graph.versions, library=graph.library)
    for node in graph.node:
        if node.name in found:
            new = made.node.add()
            new.CopyFrom(node)
            new.device = ""
            kept = [each for each in new.input if not each.startswith("^") or each[1:] in found and has_branches]
            new.input[:] = kept
            for name in _ONLY_HERE:
                new.attr.pop(name, None)
    return made


def rewire(graph: GraphDef, instead: Mapping[tuple[str, int], str]) -> None:
    """Give the consumers of tensors another input."""

    def final(key: tuple[str, int]) -> str:
        seen = {key}
        while key in instead and split(instead[key]) not in seen:
            key = split(instead[key])
            seen.add(key)
        return join(*key)

    for node in graph.node:
        node.input[:] = [final(split(each)) if split(each) in instead else each for each in node.input]


def unused(graph: GraphDef, wanted: str) -> str:
    """Return a name that no node has and that TensorFlow allows."""
    name = base = re.sub(r"[^\w.\-/]", "_", re.sub(r"^[^\w.]+", "", wanted)) or "tensor"
    taken, number = {node.name for node in graph.node}, 0
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def add(graph: GraphDef, op: str, name: str, inputs: Iterable[str], **attrs: Any) -> str:
    """Add a node with attributes that are types, shapes (lists) or numbers; return its name."""
    node = graph.node.add(op=op, name=unused(graph, name))
    node.input.extend(inputs)
    for key, value in attrs.items():
        if isinstance(value, tf.DType):
            node.attr[key].type = value.as_datatype_enum
        elif isinstance(value, bool):
            node.attr[key].b = value
        elif isinstance(value, int):
            node.attr[key].i = value
        elif isinstance(value, tf.TensorShape):
            node.attr[key].shape.CopyFrom(value.as_proto())
        else:
            node.attr[key].CopyFrom(value)
    return node.name


def attribute(node: Message, name: str, default: Any = None) -> Any:
    """Return the value of an attribute, ``default`` without one. Only to read ``node.attr[name]`` would add it."""
    if name not in node.attr:
        return default
    value = node.attr[name]
    return getattr(value, value.WhichOneof("value") or "s")


def is_of_training(node: Message) -> bool:
    """Return True for a batch normalization with the statistics of the batch."""
    return node.op in NORMS and bool(attribute(node, "is_training", True))


def set_constant(node: Message, value: Any, dtype: DType) -> None:
    """Make a node a constant; its name stays."""
    node.op = "Const"
    del node.input[:]
    node.attr.clear()
    node.attr["dtype"].type = dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))


def constant(graph: GraphDef, name: str, value: Any, dtype: DType, beside: str) -> str:
    """Add a constant for a node that also takes the tensor ``beside``, and return its name."""
    made = graph.node.add(name=unused(graph, name))
    set_constant(made, value, dtype)
    made.input.append(join(split(beside)[0], CONTROL))  # in a loop of TensorFlow 1, all inputs are of the loop
    return str(made.name)


def set_identity(node: Message, source: str, dtype: DType) -> None:
    """Make a node the identity of a tensor; its name stays."""
    node.op = "Identity"
    node.input[:] = [source]
    node.attr.clear()
    node.attr["T"].type = dtype.as_datatype_enum


def constant_value(node: Message | None) -> Any:
    """Return the value of a constant node, None for another."""
    return tf.make_ndarray(node.attr["value"].tensor) if node is not None and node.op == "Const" else None
