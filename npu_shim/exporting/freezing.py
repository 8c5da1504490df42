"""Make the variables of a graph constants."""

from __future__ import annotations

import re
import types
from typing import Sequence

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import GraphDef, Message
from npu_shim.exporting.graph_defs import (
    VARIABLES,
    attribute_or_default,
    nodes_by_name,
    set_constant,
    split_tensor_name,
    variable_of_tensor,
)

tf, v1 = tf_api.tf, tf_api.v1


def freeze_variables(graph: GraphDef, values: dict[str, np.ndarray], kept_nodes: Sequence[str]) -> GraphDef:
    """Return a graph with the values of variables, which are given by the names of nodes, in the place of variables.

    Args:
        graph: nodes, and functions that are loops.
        values: of the variables.
        kept_nodes: names of nodes that must stay.
    """
    everything = nodes_by_name(graph)
    for node in list(graph.node):
        node.op = re.sub("^Ref(?=Identity|Switch|Merge|Enter)", "", node.op)
        if node.op in VARIABLES and node.op != "VarHandleOp":
            node.op = "VariableV2"
        elif node.op == "VariableShape":
            shape = values[str(variable_of_tensor(everything, node.input[0]))].shape
            inputs = f"^{split_tensor_name(node.input[0])[0]}"
            out = attribute_or_default(node, "out_type", tf.int32.as_datatype_enum)
            set_constant(node, shape, tf.as_dtype(out))
            node.input.append(inputs)
        _make_gather_read_value(graph.node, node)
    for function in graph.library.function:
        for node in list(function.node_def):
            _make_gather_read_value(function.node_def, node, ":value:0", ":output:0")
    reads = {f"{name}{read}:0": value for name, value in values.items() for read in ("", "/Read/ReadVariableOp")}
    session = types.SimpleNamespace(run=lambda names: [reads[name] for name in names])  # all that TensorFlow asks of it
    return v1.graph_util.convert_variables_to_constants(session, graph, list(kept_nodes))


def _make_gather_read_value(nodes: Message, node: Message, value_suffix: str = "", output_suffix: str = "") -> None:
    """Let a gather from a variable, which TensorFlow does not freeze in loops, take what a new op reads from it.

    Args:
        nodes: of the graph, or of a function.
        node: any.
        value_suffix, output_suffix: of the names of results inside a function.
    """
    if node.op not in ("ResourceGather", "ResourceGatherNd"):
        return
    dtype, batch = node.attr["dtype"].type, attribute_or_default(node, "batch_dims", 0)
    read = nodes.add(name=f"{node.name}/npu_shim_read", op="ReadVariableOp", input=[node.input[0]])
    read.attr["dtype"].type = dtype
    node.op = "GatherV2" if node.op == "ResourceGather" else "GatherNd"
    node.input[0] = read.name + value_suffix
    node.attr["Tparams"].type = dtype
    for name in set(node.attr) - {"Tparams", "Tindices"}:
        node.attr.pop(name)
    if node.op == "GatherV2":
        axis = nodes.add(name=f"{node.name}/npu_shim_axis")
        set_constant(axis, batch, tf.int32)
        if not output_suffix:  # a constant of a loop of TensorFlow 1 needs an input from the loop
            axis.input.append(f"^{split_tensor_name(node.input[1])[0]}")
        node.input.insert(2, axis.name + output_suffix)
        node.attr["Taxis"].type, node.attr["batch_dims"].i = tf.int32.as_datatype_enum, batch
