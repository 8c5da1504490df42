"""Replace what belongs to training: dropout by its input, batch statistics by their moving averages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Iterator

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.nodes import (
    ExportError,
    attribute,
    by_name,
    constant_value,
    data_inputs,
    join,
    rewire,
    set_constant,
    set_identity,
    split,
)

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import GraphDef

tf = tf_api.tf
_BUILD = (
    "Build the graph for inference (training=False, is_training=False or ModeKeys.PREDICT), restore the checkpoint "
    "there, and export that graph."
)
_PASS = ("Identity", "StopGradient", "Cast", "Reshape", "Squeeze", "ExpandDims", "PreventGradient", "CheckNumerics")
_MASKS = (*_PASS, "Floor", "GreaterEqual", "Greater", "Less", "LessEqual", "Add", "AddV2", "Sub", "Mul", "LogicalNot")
_COMPARE = {"Floor", "GreaterEqual", "Greater", "Less", "LessEqual"}
_TRAINING = re.compile(r"train|phase|learning", re.I)
_RANDOM = re.compile(r"^(Stateless)?(Random|Truncated|ParameterizedTruncated|Multinomial)")
_SHIM_DROPOUT = re.compile(rb"^NpuShim(Chosen)?Dropout$")
_VENDOR_DROPOUT = ("DropOutDoMask", "DropOutDoMaskV3")
_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp", "AutoReloadVariable")
_ONE_INPUT_FREE = {"CheckNumerics": "T", "StopGradient": "T", "PreventGradient": "T", "PlaceholderWithDefault": "dtype"}


def for_inference(part: GraphDef, whole: GraphDef) -> list[str]:
    """Replace the training-only parts of a graph in place.

    Args:
        part: the nodes that the outputs need.
        whole: the source, with the updates of moving averages.
    Returns:
        Lines that say what was replaced.
    Raises:
        ExportError: a part has no exact form for inference.
    """
    for node in part.node:
        if node.op in _ONE_INPUT_FREE:
            set_identity(node, node.input[0], tf.as_dtype(node.attr[_ONE_INPUT_FREE[node.op]].type))
    dropouts = _replace_dropouts(part)
    norms = _replace_batch_statistics(part, whole)
    lines = [f"{dropouts} dropout{'s' * (dropouts > 1)} replaced by the input"] * (dropouts > 0)
    return lines + [f"{norms} batch norm{'s' * (norms > 1)} use moving averages instead of the batch"] * (norms > 0)


def refuse_leftovers(part: GraphDef) -> None:
    """Raise an error for what would make predictions random or dependent on the batch."""
    nodes = by_name(part)
    for node in [*part.node, *(node for function in part.library.function for node in function.node_def)]:
        if _RANDOM.match(node.op):
            raise ExportError(
                f"{node.name} ({node.op}) makes the outputs random. Make it an input, --inputs {node.name}:SHAPE, or: "
                + _BUILD
            )
        if node.op in _NORMS and (attribute(node, "is_training", True)):
            raise ExportError(f"{node.name} uses the statistics of the batch, and has no moving averages. {_BUILD}")
        if node.op == "SquaredDifference" and node.name in nodes and _is_of_batch(nodes, node):
            raise ExportError(f"{node.name} is the variance of a batch, and has no moving average. {_BUILD}")


def _is_of_batch(nodes: dict[str, Any], node: Any) -> bool:
    """Return True for a variance, also over the batch, of what depends on an input."""
    for each in data_inputs(node):
        mean = nodes[split(each)[0]]
        mean = nodes[split(mean.input[0])[0]] if mean.op == "Identity" else mean
        axes = constant_value(nodes[split(mean.input[1])[0]]) if mean.op == "Mean" else None
        if axes is not None and 0 in axes.reshape(-1).tolist():
            stack, seen = [split(mean.input[0])[0]], set()
            while stack:
                name = stack.pop()
                if name not in seen and name in nodes:
                    seen.add(name)
                    stack += [split(each)[0] for each in data_inputs(nodes[name])]
            return any(nodes[name].op == "Placeholder" for name in seen)
    return False


# --- dropout


def _replace_dropouts(graph: GraphDef) -> int:
    nodes = by_name(graph)
    masks = {node.name for node in graph.node if node.op in ("Cast", *_COMPARE) and _is_mask(nodes, node.name, False)}
    instead: dict[tuple[str, int], str] = {}
    for node in graph.node:
        source = _dropout_input(nodes, node, masks)
        if source is not None:
            instead[(node.name, 0)] = source
    for name, source in instead.items():  # the name stays, because it may be an output
        node = nodes[name[0]]
        dtype = tf.as_dtype(node.attr["T"].list.type[0] if node.op == "IdentityN" else node.attr["T"].type)
        set_identity(node, source, dtype)
    return len(instead)


def _is_mask(nodes: dict[str, Any], name: str, compared: bool) -> bool:
    """Return True for a comparison of random numbers with a rate, or their floor."""
    node = nodes.get(split(name)[0])
    if node is None:
        return False
    if _RANDOM.match(node.op):
        return compared
    if node.op not in _MASKS:
        return False
    compared = compared or node.op in _COMPARE
    found = False
    for each in data_inputs(node):
        other = nodes.get(split(each)[0])
        if other is not None and _is_mask(nodes, each, compared):
            found = True
    return found


def _dropout_input(nodes: dict[str, Any], node: Any, masks: set[str]) -> str | None:
    """Return what a dropout gets, None if a node is no dropout."""
    if node.op in _VENDOR_DROPOUT or node.op == "IdentityN" and _SHIM_DROPOUT.match(_gradient(node)):
        return str(node.input[1] if node.op == "IdentityN" else node.input[0])
    operands = data_inputs(node)
    if node.op == "Mul":
        masked = [number for number in (0, 1) if split(operands[number])[0] in masks]
        if len(masked) != 1:
            return None
        scaled = operands[1 - masked[0]]
    elif node.op in ("Select", "SelectV2") and split(operands[0])[0] in masks and _is_zero(nodes, operands[2]):
        scaled = operands[1]
    else:
        return None
    scaling = nodes[split(scaled)[0]]
    if scaling.op in ("RealDiv", "Div", "DivNoNan"):
        return str(scaling.input[0])
    if scaling.op == "Mul":
        scales = [number for number in (0, 1) if _is_scalar(nodes, scaling.input[number])]
        if scales:
            return str(scaling.input[1 - scales[-1]])
    return None


def _gradient(node: Any) -> bytes:
    return bytes(attribute(node, "_gradient_op_type", b""))


def _is_zero(nodes: dict[str, Any], name: str) -> bool:
    node = nodes[split(name)[0]]
    if node.op in ("Identity", "Fill", "BroadcastTo"):
        return _is_zero(nodes, node.input[1 if node.op == "Fill" else 0])
    value = constant_value(node)
    return node.op == "ZerosLike" or value is not None and not value.any()


def _is_scalar(nodes: dict[str, Any], name: str) -> bool:
    """Return True for a number that is constant, fed, or computed from such numbers."""
    node = nodes.get(split(name)[0])
    if node is None:
        return False
    if node.op == "Const":
        return not node.attr["value"].tensor.tensor_shape.dim
    if node.op.startswith("Placeholder"):
        return "shape" in node.attr and not node.attr["shape"].shape.dim
    arithmetic = ("Sub", "RealDiv", "Div", "Mul", "Cast", "Identity", "Reciprocal", "Add", "AddV2")
    return node.op in arithmetic and all(_is_scalar(nodes, each) for each in data_inputs(node))


# --- batch normalization


def _replace_batch_statistics(part: GraphDef, whole: GraphDef) -> int:
    """Replace the statistics that the source averages by the averages."""
    averages = dict(_averages(whole))
    nodes, everything = by_name(part), by_name(whole)
    done = set()
    instead: dict[tuple[str, int], str] = {}
    for node in list(part.node):
        if node.op in _NORMS and (attribute(node, "is_training", True)):
            if all(_variable(nodes, each) for each in node.input[3:5]):  # TensorFlow 2 averages in the op
                both = [_variable(nodes, each) for each in node.input[3:5]]
            else:
                both = [averages.get((node.name, index)) for index in (1, 2)]
            if all(both):
                node.input[3:5] = [_read(part, nodes, everything, str(variable)) for variable in both]
                node.attr["is_training"].b = False
                done.add(node.name)
    for key, variable in averages.items():
        if key[0] in nodes and nodes[key[0]].op not in _NORMS:
            instead[key] = _read(part, nodes, everything, variable)
            done.add(key[0].rpartition("/")[0])
    rewire(part, instead)
    return len(done)


def _averages(graph: GraphDef) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield each batch statistic and the variable that averages it: v -= (v - statistic) (1 - decay)."""
    nodes = by_name(graph)
    for node in graph.node:
        if node.op not in ("AssignSub", "AssignSubVariableOp"):
            continue
        variable, product = _variable(nodes, node.input[0]), nodes[split(node.input[1])[0]]
        if product.op in ("Select", "SelectV2"):  # Keras: no update by an empty batch
            product = nodes[split(product.input[1])[0]]
        for factor in data_inputs(product) if product.op == "Mul" else ():
            difference = nodes[split(factor)[0]]
            if difference.op != "Sub" or variable is None or _variable(nodes, difference.input[0]) != variable:
                continue
            chain = [split(difference.input[1])]
            while nodes[chain[-1][0]].op in ("Identity", "Switch", "StopGradient", "Cast"):
                chain.append(split(nodes[chain[-1][0]].input[0]))
            if nodes[chain[-1][0]].op in (*_NORMS, "Mean", "Squeeze", "Reshape"):  # not the variables of an EMA
                yield from ((key, variable) for key in chain)


def _variable(nodes: dict[str, Any], name: str) -> str | None:
    node = nodes[split(name)[0]]
    while node.op in ("Identity", "ReadVariableOp", "Switch", "RefSwitch", "Enter", "RefIdentity"):
        node = nodes[split(node.input[0])[0]]
    return str(node.name) if node.op in _VARIABLES else None


def _read(part: GraphDef, nodes: dict[str, Any], whole: dict[str, Any], variable: str) -> str:
    """Return a tensor with the value of a variable, which the part gets if it does not have it."""
    if variable not in nodes:
        nodes[variable] = part.node.add()
        nodes[variable].CopyFrom(whole[variable])
        nodes[variable].attr.pop("_class", None)
    name = f"{variable}/npu_shim_read"
    if name not in nodes:
        nodes[name] = part.node.add(name=name, input=[variable])
        dtype = nodes[variable].attr["dtype"].type
        is_resource = nodes[variable].op == "VarHandleOp"
        nodes[name].op = "ReadVariableOp" if is_resource else "Identity"
        nodes[name].attr["dtype" if is_resource else "T"].type = dtype
    return join(name)


def bind(part: GraphDef, values: dict[str, Any]) -> list[str]:
    """Make placeholders constants: those that ``--set`` names, and those that tell training from inference."""
    lines = []
    for node in part.node:
        if node.name in values or node.op != "PlaceholderWithDefault" and is_mode(node):
            value = values.get(node.name, False)
            set_constant(node, value, tf.as_dtype(node.attr["dtype"].type))
            lines.append(f"{node.name} is {value}")
    return lines


def is_mode(node: Any) -> bool:
    """Return True for a placeholder that tells training from inference."""
    if not node.op.startswith("Placeholder") or not _TRAINING.search(node.name):
        return False
    return bool(attribute(node, "dtype") == tf.bool.as_datatype_enum)
