"""Replace what belongs to training: branches, dropout by its input, batch statistics by their moving averages."""

from __future__ import annotations

import json
import pkgutil
import re
from typing import Container, Sequence

import numpy as np

from npu_shim._tensorflow import tf_api, tf_export
from npu_shim._tensorflow.types import GraphDef, Message, Value
from npu_shim.exporting.graph_defs import (
    CONTROL,
    NORMS,
    ExportError,
    Notes,
    attribute_or_default,
    constant_value,
    data_inputs,
    extract_subgraph,
    is_training_batch_norm,
    join_tensor_name,
    nodes_by_name,
    rewire_inputs,
    set_constant,
    set_identity,
    split_tensor_name,
    unused_node_name,
    variable_of_tensor,
)
from npu_shim.exporting.numbers import constant_numbers

tf = tf_api.tf
_BUILD = (
    "Build the graph for inference (training=False, is_training=False or ModeKeys.PREDICT), restore the checkpoint "
    "there, and export that graph."
)
# Pattern of the types of ops that no exported graph may have -> the rest of the sentence that begins with the op.
_NEVER: dict[str, str] = json.loads(pkgutil.get_data(__name__, "refusals.json") or b"")
_ROUNDING = 1e-3  # of a scale in 16 bits
_TRAINING = re.compile(r"train|phase|learning", re.I)
_SHIM_DROPOUT = re.compile(rb"^NpuShim(Chosen)?Dropout$")
_VENDOR_DROPOUT = ("DropOutDoMask", "DropOutDoMaskV3")
_ONE_INPUT_FREE = {"CheckNumerics": "T", "StopGradient": "T", "PreventGradient": "T", "PlaceholderWithDefault": "dtype"}


def remove_training_behavior(graph: GraphDef, averages: dict[tuple[str, int], str]) -> Notes:
    """Replace the training-only parts of a graph in place.

    Args:
        graph: what the outputs need, and the averages.
        averages: of the source.
    Returns:
        Lines that say what was replaced.
    Raises:
        ExportError: a part has no exact form for inference.
    """
    for node in graph.node:
        if node.op in _ONE_INPUT_FREE:
            set_identity(node, node.input[0], tf.as_dtype(node.attr[_ONE_INPUT_FREE[node.op]].type))
    dropouts = _replace_dropouts(graph)
    norms = _replace_batch_statistics(graph, averages)
    lines = [f"{dropouts} dropout{'s' * (dropouts > 1)} replaced by the input"] * (dropouts > 0)
    return lines + [f"{norms} batch norm{'s' * (norms > 1)} use moving averages instead of the batch"] * (norms > 0)


def raise_for_training_ops(graph: GraphDef, input_placeholders: Container[str]) -> None:
    """Raise an error for what no frozen graph has, and what makes predictions depend on the batch or on chance.

    Args:
        graph: for inference.
        input_placeholders: names of the placeholders that are inputs.
    """
    nodes, functions = nodes_by_name(graph), {function.signature.name for function in graph.library.function}
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
        op = "If" if node.op in functions else node.op
        for text in [
            text for pattern, text in _NEVER.items() if re.match(pattern, op) and node.name not in input_placeholders
        ]:
            raise ExportError(f"{node.name} ({node.op}) {text.format(node.name)}")
        if is_training_batch_norm(node):
            raise ExportError(f"{node.name} uses statistics of the batch, and has no moving averages. {_BUILD}")
        if node.op == "SquaredDifference" and node.name in nodes and _is_batch_variance(graph, nodes, node):
            raise ExportError(f"{node.name} is the variance of a batch, and has no moving average. {_BUILD}")


def _is_batch_variance(graph: GraphDef, nodes: dict[str, Message], node: Message) -> bool:
    """Return True for a variance, also over the batch, of what depends on an input."""
    for tensor in data_inputs(node):
        mean = nodes[split_tensor_name(tensor)[0]]
        mean = nodes[split_tensor_name(mean.input[0])[0]] if mean.op == "Identity" else mean
        axes = constant_value(nodes[split_tensor_name(mean.input[1])[0]]) if mean.op == "Mean" else None
        if axes is not None and 0 in axes.reshape(-1).tolist():
            return any(source.op == "Placeholder" for source in extract_subgraph(graph, mean.input[:1]).node)
    return False


def without_dead_branches(graph: GraphDef, kept_tensors: Sequence[str]) -> GraphDef:
    """Return a graph without the branches that constants decide.

    Args:
        graph: with the branches of TensorFlow 1.
        kept_tensors: names of tensors that must stay.
    """
    known, sides = constant_numbers(graph), {}
    for node in list(graph.node):
        side = known.get(split_tensor_name(node.input[1])[0]) if node.op in ("Switch", "RefSwitch") else None
        if node.op in ("Merge", "RefMerge"):  # TensorFlow keeps one with a control input
            node.input[:] = data_inputs(node)
        if side is not None and np.ndim(side) == 0:
            predicate = graph.node.add(name=unused_node_name(graph, f"{node.name}/side"))
            set_constant(predicate, bool(side), tf.bool)
            predicate.input.append(join_tensor_name(split_tensor_name(node.input[0])[0], CONTROL))  # of the same loop
            node.input[1], sides[node.name] = predicate.name, int(side)
    graph = extract_subgraph(tf_export.optimize_graph(graph, kept_tensors, ["loop"]) if sides else graph, kept_tensors)
    used = {split_tensor_name(tensor) for node in graph.node for tensor in node.input}
    for node in graph.node:
        if node.name in sides and (node.name, 1 - sides[node.name]) not in used:  # 1.15 keeps the switch
            set_identity(node, node.input[0], tf.as_dtype(node.attr["T"].type).base_dtype)
    kept_switches = {node.name for node in graph.node if node.op in ("Switch", "RefSwitch")}
    rewire_inputs(graph, {(name, 1): name for name in sides if name not in kept_switches})
    return graph


# --- dropout


def _replace_dropouts(graph: GraphDef) -> int:
    nodes, known = nodes_by_name(graph), [constant_numbers(graph, fed) for fed in (0.5, 0.75)]
    instead = {node.name: source for node in graph.node for source in [_dropout_input(nodes, node, known)] if source}
    for name, source in instead.items():  # the name stays, because it may be an output
        node = nodes[name]
        set_identity(node, source, tf.as_dtype(node.attr["T"].type or node.attr["T"].list.type[0]))
    return len(instead)


def _dropout_input(nodes: dict[str, Message], node: Message, known: Sequence[dict[str, Value]]) -> str | None:
    """Return what a dropout gets, None if a node is no dropout: an input, scaled, times a mask that is drawn."""
    if node.op in _VENDOR_DROPOUT:
        return str(node.input[0])
    if node.op == "IdentityN" and _SHIM_DROPOUT.match(attribute_or_default(node, "_gradient_op_type", b"")):
        return str(node.input[1])
    if node.op not in ("Mul", "Select", "SelectV2"):
        return None
    inputs, x = data_inputs(node), ""
    for number in known:  # with two values of numbers that are fed, such as keep_prob
        factors: list[Value] = [number.get(split_tensor_name(tensor)[0]) for tensor in inputs]
        data = [at for at, factor in enumerate(factors) if factor is None]
        if len(data) != 1 or node.op != "Mul" and (data != [1] or np.any(factors[2])):
            return None
        mask = factors[1 - data[0]]
        levels = np.unique(mask[mask != 0]) if np.ndim(mask) else ()
        if len(levels) != 1:
            return None
        x, gain = inputs[data[0]], np.mean(mask)
        scaling = nodes[split_tensor_name(x)[0]]
        if abs(gain - 1) > _ROUNDING and scaling.op in ("Mul", "RealDiv", "Div", "DivNoNan"):
            one, two = scaling.input[:2]
            if scaling.op == "Mul" and split_tensor_name(one)[0] in number:
                one, two = two, one
            scale = number.get(split_tensor_name(two)[0])
            if scale is not None:
                x, gain = one, gain * (scale if scaling.op == "Mul" else 1 / (scale or np.inf))
        if abs(gain - 1) > _ROUNDING:
            kept = np.mean(mask != 0)
            raise ExportError(
                f"{node.name} keeps {kept:.3g} of its input and scales it by {gain / kept:.3g}, which changes the "
                f"mean. {_BUILD}"
            )
    return x


# --- batch normalization


def averages_of_batch_statistics(graph: GraphDef) -> dict[tuple[str, int], str]:
    """Return each batch statistic, and what reads the variable that averages it: v -= (v - statistic) (1 - decay)."""
    nodes, reads = nodes_by_name(graph), {}
    unbiased = {}  # zero-debiased averages: v = biased / (1 - decay^step), where biased is the average
    for node in graph.node:
        value = nodes[split_tensor_name(node.input[1])[0]] if node.op in ("Assign", "AssignVariableOp") else None
        if value is not None and value.op == "RealDiv":
            unbiased[variable_of_tensor(nodes, value.input[0])] = variable_of_tensor(nodes, node.input[0])
    for node in [node for node in graph.node if node.op in ("AssignSub", "AssignSubVariableOp")]:
        variable, product = variable_of_tensor(nodes, node.input[0]), nodes[split_tensor_name(node.input[1])[0]]
        if product.op in ("Select", "SelectV2"):  # Keras: no update by an empty batch
            product = nodes[split_tensor_name(product.input[1])[0]]
        for factor in data_inputs(product) if product.op == "Mul" and variable else ():
            difference = nodes[split_tensor_name(factor)[0]]
            if difference.op != "Sub" or variable_of_tensor(nodes, difference.input[0]) != variable:
                continue
            chain = [split_tensor_name(difference.input[1])]
            while nodes[chain[-1][0]].op in ("Identity", "Switch", "StopGradient", "Cast"):
                chain.append(split_tensor_name(nodes[chain[-1][0]].input[0]))
            if nodes[chain[-1][0]].op in (*NORMS, "Mean", "Squeeze", "Reshape"):  # not the variables of an EMA
                average = str(unbiased.get(variable) or variable)
                read = f"{average}/Read/ReadVariableOp"
                reads.update({key: read if read in nodes else average for key in chain})
    return reads


def _replace_batch_statistics(graph: GraphDef, averages: dict[tuple[str, int], str]) -> int:
    """Replace the statistics that the source averages by the averages."""
    nodes, done = nodes_by_name(graph), set()
    for node in [node for node in graph.node if is_training_batch_norm(node)]:
        reads = [averages.get((node.name, index)) for index in (1, 2)]
        if all(reads):
            node.input[3:5] = reads
        is_averaged = all(reads) or all(variable_of_tensor(nodes, tensor) for tensor in node.input[3:5] or [""])
        if is_averaged:  # by the source, or by the op
            node.attr["is_training"].b = False
            done.add(node.name)
    instead = {key: read for key, read in averages.items() if key[0] in nodes and nodes[key[0]].op not in NORMS}
    rewire_inputs(graph, instead)
    return len(done | {name.rpartition("/")[0] for name, _ in instead})


def bind_placeholders(part: GraphDef, values: dict[str, Value]) -> Notes:
    """Make placeholders constants: those that ``--set`` names, and those that tell training from inference."""
    lines = []
    for node in part.node:
        if node.name in values or node.op != "PlaceholderWithDefault" and is_mode_placeholder(node):
            value = values.get(node.name, False)
            set_constant(node, value, tf.as_dtype(node.attr["dtype"].type))
            lines.append(f"{node.name} is {value}")
    return lines


def is_mode_placeholder(node: Message) -> bool:
    """Return True for a placeholder that tells training from inference."""
    if not node.op.startswith("Placeholder") or not _TRAINING.search(node.name):
        return False
    return bool(attribute_or_default(node, "dtype") == tf.bool.as_datatype_enum)
