"""Graph definitions as data: names of tensors, subgraphs, nodes that become something else."""

from __future__ import annotations

import re
from typing import Iterable, List, Mapping

from npu_shim._tensorflow import op_types, tf_api
from npu_shim._tensorflow.types import DType, GraphDef, Message, Value

tf = tf_api.tf
Notes = List[str]  # lines for the user about changes to a graph
CONTROL = -1  # the index of a control input
NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
VARIABLES = op_types.VARIABLES | {"AutoReloadVariable"}
_LOOPS_AND_BRANCHES = {"Switch", "RefSwitch", "Enter", "RefEnter"}
_ONLY_HERE = ("_class", "_output_shapes")  # attributes that name nodes outside of a subgraph, or repeat shapes


class ExportError(Exception):
    """Raised for a source that cannot be exported; the text says what to do."""


def split_tensor_name(name: str) -> tuple[str, int]:
    """Return node and index of a tensor ``a:1``, of an input ``a`` or of a control input ``^a``."""
    node, _, index = name.partition(":")
    return (node[1:], CONTROL) if node.startswith("^") else (node, int(index or 0))


def join_tensor_name(node: str, index: int = 0) -> str:
    """Return the input of a node, as a graph definition spells it."""
    return f"^{node}" if index == CONTROL else node if index == 0 else f"{node}:{index}"


def key_of_tensor(tensor: str) -> str:
    """Return the name of a tensor in signatures."""
    return join_tensor_name(*split_tensor_name(tensor)).replace(":", "_")


def nodes_by_name(graph: GraphDef) -> dict[str, Message]:
    """Return the nodes of a graph by their names."""
    return {node.name: node for node in graph.node}


def data_inputs(node: Message) -> list[str]:
    """Return the inputs of a node without its control inputs."""
    return [name for name in node.input if not name.startswith("^")]


def extract_subgraph(graph: GraphDef, outputs: Iterable[str], stop: Iterable[str] = ()) -> GraphDef:
    """Return the nodes that outputs need.

    Args:
        graph: with these outputs.
        outputs: names of tensors.
        stop: names of tensors that are given, so that what makes them is not needed.
    """
    nodes = nodes_by_name(graph)
    given = {key for tensor in stop for key in (split_tensor_name(tensor), (split_tensor_name(tensor)[0], CONTROL))}
    stack, needed = [split_tensor_name(tensor) for tensor in outputs], set()
    # without branches and loops, a control input orders updates and checks, which inference does not have
    has_branches = any(node.op in _LOOPS_AND_BRANCHES for node in graph.node)
    while stack:
        name, index = stack.pop()
        if name not in needed and (name, index) not in given:
            needed.add(name)
            stack += [
                split_tensor_name(tensor) for tensor in nodes[name].input if has_branches or not tensor.startswith("^")
            ]
    kept = [node for node in graph.node if node.name in needed]
    part = tf_api.GraphDef(versions=graph.versions, library=graph.library, node=kept)
    for node in part.node:
        node.device = ""
        node.input[:] = [
            tensor for tensor in node.input if not tensor.startswith("^") or tensor[1:] in needed and has_branches
        ]
        for name in _ONLY_HERE:
            node.attr.pop(name, None)
    return part


def rewire_inputs(graph: GraphDef, new_inputs: Mapping[tuple[str, int], str]) -> None:
    """Give the consumers of tensors another input."""
    for node in graph.node:
        node.input[:] = [new_inputs.get(split_tensor_name(tensor), tensor) for tensor in node.input]


def unused_node_name(graph: GraphDef, preferred: str) -> str:
    """Return a name that no node has and that TensorFlow allows."""
    base = re.sub(r"[^\w.\-/]", "_", re.sub(r"^[^\w.]+", "", preferred)) or "tensor"
    taken = {node.name for node in graph.node}
    names = (f"{base}_{number}" if number else base for number in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def attribute_or_default(node: Message, name: str, default: Value = None) -> Value:
    """Return the value of an attribute, ``default`` without one. Only to read ``node.attr[name]`` would add it."""
    if name not in node.attr:
        return default
    value = node.attr[name]
    return getattr(value, value.WhichOneof("value") or "s")


def is_training_batch_norm(node: Message) -> bool:
    """Return True for a batch normalization with the statistics of the batch."""
    return node.op in NORMS and bool(attribute_or_default(node, "is_training", True))


def set_constant(node: Message, value: Value, dtype: DType) -> None:
    """Make a node a constant; its name stays."""
    del node.input[:]
    node.attr.clear()
    node.op, node.attr["dtype"].type = "Const", dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))


def set_identity(node: Message, source: str, dtype: DType) -> None:
    """Make a node the identity of a tensor; its name stays."""
    node.input[:] = [source]
    node.attr.clear()
    node.op, node.attr["T"].type = "Identity", dtype.as_datatype_enum


def variable_of_tensor(nodes: Mapping[str, Message], name: str) -> str | None:
    """Return the variable whose handle or value a tensor is, None if it is another."""
    node = nodes[split_tensor_name(name)[0]]
    while re.match("(Ref)?(Identity|Switch|Enter)$|ReadVariableOp|AssignSub$", node.op):
        node = nodes[split_tensor_name(node.input[0])[0]]
    return str(node.name) if node.op in VARIABLES else None


def variable_names(graph: GraphDef) -> list[str]:
    """Return the nodes of the variables."""
    return [node.name for node in graph.node if node.op in VARIABLES]


def constant_value(node: Message | None) -> Value:
    """Return the value of a constant node, None for another."""
    return tf.make_ndarray(node.attr["value"].tensor) if node is not None and node.op == "Const" else None
