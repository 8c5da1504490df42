"""A source in its form for inference: one frozen graph with named inputs and outputs."""

from __future__ import annotations

import json
import pathlib
from typing import Callable, NamedTuple

import numpy as np

from npu_shim._tensorflow import tf_api, tf_capture, tf_export
from npu_shim._tensorflow.op_types import LOOPS
from npu_shim._tensorflow.types import Graph, GraphDef, Value
from npu_shim.exporting import batches, freezing, graph_defs, inference, plain_ops
from npu_shim.exporting.ports import Port, shape_of
from npu_shim.exporting.sources import Source

tf = tf_api.tf
_CALLS = {"PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While", "StatelessWhile", "Case"}
_FOLD = ("function", "pruning", "loop", "constfold", "dependency", "pruning")
_LATER = {"BatchMatMulV3": "BatchMatMulV2"}  # ops that 1.15 has under an older name


class Model(NamedTuple):
    """An exported model.

    Attributes:
        graph: frozen.
        inputs, outputs: their tensors are those of this graph; placeholders have the asked shapes.
        reference: the graph of the source, with variables, whose inputs and outputs have the same names.
        values: of the variables of the reference.
        notes: lines for the user.
        lines: returns the lines of the script that create a node.
    """

    graph: GraphDef
    inputs: list[Port]
    outputs: list[Port]
    reference: GraphDef
    values: dict[str, np.ndarray]
    notes: graph_defs.Notes
    lines: Callable[[str], list[str]]


def make_inference_model(
    source: Source,
    graph: Graph,
    inputs: list[Port],
    outputs: list[Port],
    constants: dict[str, Value],
    for_onnx: bool = False,
) -> Model:
    """Bring a source to its form for inference.

    Args:
        source, graph: the source and its graph.
        inputs, outputs: of the source.
        constants: values of placeholders that are no inputs.
        for_onnx: True to keep loops of TensorFlow 2 as functions, and to write what tf2onnx does not have otherwise.
    """
    averages = inference.averages_of_batch_statistics(source.graph)
    needed = [*averages.values(), *(port.tensor for port in outputs)]
    part = graph_defs.extract_subgraph(source.graph, needed, [port.tensor for port in inputs])
    own = {node.name for node in source.graph.node if node.op.startswith("Placeholder")}
    asked, inputs = inputs, [_replace_by_placeholder(part, port, own) for port in inputs]
    given, outputs = outputs, [_port_with_own_node(part, port) for port in outputs]
    kept = [port.tensor for port in outputs]
    needed = [*kept, *averages.values()]
    notes = batches.fit_reshapes_to_batch(part, graph, asked, given) + inference.bind_placeholders(part, constants)
    part = graph_defs.extract_subgraph(part, needed)
    if any(node.op in _CALLS for node in part.node):
        loops = not for_onnx or tf.__version__.startswith("1.")
        part = tf_export.inline_functions(part, [*needed, *(port.tensor for port in inputs)], loops)
    part = inference.without_dead_branches(part, needed)
    notes += inference.remove_training_behavior(part, averages)
    part = graph_defs.extract_subgraph(part, kept)
    names = graph_defs.variable_names(part)
    values = source.read(names) if names else {}
    for name in set(names) - set(values):
        raise graph_defs.ExportError(
            f"{source.path} has no value for {name}. Give the checkpoint that belongs to the graph."
        )
    reference = tf_api.GraphDef.FromString(part.SerializeToString())
    inputs = [port for port in inputs if graph_defs.split_tensor_name(port.tensor)[0] in graph_defs.nodes_by_name(part)]

    notes += plain_ops.replace_by_plain_ops(part, for_onnx)
    frozen = graph_defs.extract_subgraph(part, kept)
    if not any(node.op in LOOPS for node in frozen.node):
        frozen.library.Clear()
    inference.raise_for_training_ops(frozen, {graph_defs.split_tensor_name(port.tensor)[0] for port in inputs})
    kept += [port.tensor for port in inputs]
    frozen = freezing.freeze_variables(frozen, values, [graph_defs.split_tensor_name(tensor)[0] for tensor in kept])
    frozen = _portable_graph_def(graph_defs.extract_subgraph(tf_export.optimize_graph(frozen, kept, _FOLD), kept))
    notes += ops_later_than_1_15(frozen)
    imported = tf_capture.import_into_new_graph(frozen)
    outputs = [port._replace(shape=shape_of(imported.get_tensor_by_name(port.tensor))) for port in outputs]
    return Model(frozen, inputs, outputs, reference, {name: values[name] for name in names}, notes, source.lines)


def _replace_by_placeholder(part: GraphDef, port: Port, placeholder_names: set[str]) -> Port:
    """Make an input a placeholder with the asked shape. A placeholder keeps its name; other tensors get the key."""
    node, index = graph_defs.split_tensor_name(port.tensor)
    name = node if node in placeholder_names else graph_defs.unused_node_name(part, port.key)
    placeholder = part.node.add(name=name, op="Placeholder")
    placeholder.attr["dtype"].type = port.dtype.as_datatype_enum
    placeholder.attr["shape"].shape.CopyFrom(tf.TensorShape(port.shape).as_proto())
    if name != node:
        graph_defs.rewire_inputs(part, {(node, index): name})
    return port._replace(tensor=f"{name}:0")


def _port_with_own_node(part: GraphDef, port: Port) -> Port:
    """Give an output a node of its own where it is one of several results, or of a function."""
    node, index = graph_defs.split_tensor_name(port.tensor)
    if index or graph_defs.nodes_by_name(part)[node].op in _CALLS:
        identity = part.node.add(name=graph_defs.unused_node_name(part, port.key))
        graph_defs.set_identity(identity, port.tensor, port.dtype)
        node = identity.name
    return port._replace(tensor=f"{node}:0")


def ops_later_than_1_15(graph: GraphDef) -> graph_defs.Notes:
    """Return a line for each type of op that TensorFlow 1.15 does not have, or not with these attributes."""
    known, later = operator_attributes_of_1_15(), {}
    for node in graph.node:
        attributes = ", ".join(sorted(set(node.attr) - known.get(node.op, set())))
        if node.op not in known or attributes:
            later[node.op] = f"{node.op} with {attributes}" if node.op in known else node.op
    return [f"TensorFlow 1.15 has no {what}: the graph loads in later versions only" for what in later.values()]


def operator_attributes_of_1_15() -> dict[str, set[str]]:
    """Return the attributes of the operators of TensorFlow 1.15 that an exported graph may have."""
    text = pathlib.Path(__file__).with_name("ops_of_1_15.json").read_text(encoding="utf-8")
    return {name: set(attributes) for name, attributes in json.loads(text).items()}


def _portable_graph_def(graph: GraphDef) -> GraphDef:
    """Return a graph that older versions of TensorFlow load, too."""
    for node in graph.node:
        if node.op in _LATER:
            node.op = _LATER[node.op]
            node.attr["T"].type = node.attr["Ta"].type
            for name in ("Ta", "Tb", "Tout"):
                node.attr.pop(name, None)
        for name in [name for name in node.attr if name.startswith("_")]:
            node.attr.pop(name)
    return tf_export.strip_defaults(graph)
