"""Replace what belongs to training: dropout by its input, batch statistics by their moving averages."""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Any, Callable, Iterator

from npu_shim._tensorflow import tf_api
from npu_shim.exporting.freezing import VARIABLES
from npu_shim.exporting.nodes import (
    NORMS,
    ExportError,
    attribute,
    by_name,
    constant_value,
    data_inputs,
    is_of_training,
    join,
    rewire,
    set_constant,
    set_identity,
    split,
)

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import GraphDef, Message, Value

tf = tf_api.tf
_BUILD = (
    "Build the graph for inference (training=False, is_training=False or ModeKeys.PREDICT), restore the checkpoint "
    "there, and export that graph."
)
_PASS = (
    *("Identity", "StopGradient", "Cast", "Reshape", "Squeeze", "ExpandDims", "PreventGradient", "CheckNumerics"),
    *("Enter", "Switch"),  # what a loop does not change
)
_COMPARE = ("Floor", "GreaterEqual", "Greater", "Less", "LessEqual")
_ARITHMETIC: dict[str, Callable[..., float]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "RealDiv": lambda x, y: x / (y or math.inf),
    "Div": lambda x, y: x / (y or math.inf),
    "Reciprocal": lambda x: 1 / (x or math.inf),
    **{op: float for op in _PASS},
}
_ROUNDING = 1e-3  # of a scale in 16 bits
_TRAINING = re.compile(r"train|phase|learning", re.I)
_RANDOM = re.compile(r"^(Stateless)?(Random|Truncated|ParameterizedTruncated|Multinomial)")
_SHIM_DROPOUT = re.compile(rb"^NpuShim(Chosen)?Dropout$")
_VENDOR_DROPOUT = ("DropOutDoMask", "DropOutDoMaskV3")
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
        if is_of_training(node):
            raise ExportError(f"{node.name} uses the statistics of the batch, and has no moving averages. {_BUILD}")
        if node.op == "SquaredDifference" and node.name in nodes and _is_of_batch(nodes, node):
            raise ExportError(f"{node.name} is the variance of a batch, and has no moving average. {_BUILD}")


def _is_of_batch(nodes: dict[str, Message], node: Message) -> bool:
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
    instead = {node.name: source for node in graph.node for source in [_dropout_input(nodes, node)] if source}
    for name, source in instead.items():  # the name stays, because it may be an output
        node = nodes[name]
        set_identity(node, source, tf.as_dtype(node.attr["T"].type or node.attr["T"].list.type[0]))
    return len(instead)


def _dropout_input(nodes: dict[str, Message], node: Message) -> str | None:
    """Return what a dropout gets, None if a node is no dropout."""
    if node.op in _VENDOR_DROPOUT:
        return str(node.input[0])
    if node.op == "IdentityN" and _SHIM_DROPOUT.match(attribute(node, "_gradient_op_type", b"")):
        return str(node.input[1])
    inputs = data_inputs(node)
    if node.op in ("Select", "SelectV2") and _is_zero(nodes, inputs[2]):
        mask, scaled = inputs[:2]
    elif node.op == "Mul":
        mask, scaled = inputs if _kept(nodes, inputs[0], 0.5) is not None else inputs[::-1]
    else:
        return None
    if _kept(nodes, mask, 0.5) is None:
        return None
    scaling = nodes[split(scaled)[0]]
    operands = data_inputs(scaling) if scaling.op in ("Mul", "RealDiv", "Div", "DivNoNan") else []
    if scaling.op == "Mul" and _number(nodes, operands[1], 0.5) is None:
        operands.reverse()
    if not operands or _number(nodes, operands[1], 0.5) is None:
        return None
    for fed in (0.5, 0.75):  # values of numbers that are fed, such as keep_prob
        scale, kept = _number(nodes, operands[1], fed), _kept(nodes, mask, fed)
        scale = scale if scaling.op == "Mul" else 1 / (scale or math.inf)
        if abs(scale * kept - 1) > _ROUNDING:
            raise ExportError(
                f"{node.name} keeps {kept:.3g} of its input and scales it by {scale:.3g}, which changes the mean. "
                + _BUILD
            )
    return operands[0]


def _kept(nodes: dict[str, Message], name: str, fed: float) -> Value:
    """Return the share of ones of a mask: random numbers compared with a rate, or the floor of their sum; else None."""
    node = nodes[split(name)[0]]
    inputs = data_inputs(node)
    if node.op in _PASS:
        return _kept(nodes, inputs[0], fed)
    if node.op == "LogicalNot":
        share = _kept(nodes, inputs[0], fed)
        return None if share is None else 1 - share
    if node.op not in _COMPARE:
        return None
    ends = []
    for drawn in (0.0, 1.0):
        sides = [_number(nodes, each, fed, drawn) for each in inputs] + [1.0]  # the floor is 1 from 1 on
        if sides[0] is None or sides[1] is None:
            return None
        ends.append(sides[0] - sides[1])
    if ends[0] == ends[1]:
        return None  # nothing is drawn
    root = min(max(ends[0] / (ends[0] - ends[1]), 0.0), 1.0)
    above = 1 - root if ends[1] > ends[0] else root
    return 1 - above if node.op.startswith("Less") else above


def _number(nodes: dict[str, Message], name: str, fed: float, drawn: float | None = None) -> Value:
    """Return the value of a number that is constant, fed, drawn or computed from such numbers, else None."""
    node = nodes.get(split(name)[0])
    if node is None:
        return None
    if node.op.startswith(("RandomUniform", "StatelessRandomUniform")) and "Int" not in node.op:
        return drawn
    if node.op == "Const":
        return None if node.attr["value"].tensor.tensor_shape.dim else float(constant_value(node))
    if node.op == "StridedSlice" and nodes[split(node.input[0])[0]].op == "Placeholder":
        begin = constant_value(nodes[split(node.input[1])[0]])  # an element of a vector, such as keep_prob[0]
        is_element = begin is not None and begin.size == 1 and attribute(node, "shrink_axis_mask") == 1
        return fed / (1 + abs(int(begin[0]))) if is_element else None
    if node.op.startswith("Placeholder"):
        return fed if "shape" in node.attr and not node.attr["shape"].shape.dim else None
    if node.op == "Merge" and _stays(nodes, node):
        return _number(nodes, node.input[0], fed, drawn)
    if node.op not in _ARITHMETIC:
        return None
    values = [_number(nodes, each, fed, drawn) for each in data_inputs(node)[: 1 if node.op in _PASS else None]]
    return None if None in values else _ARITHMETIC[node.op](*values)


def _stays(nodes: dict[str, Message], merge: Message) -> bool:
    """Return True for a value of a loop that each step hands on as it is."""
    begin, back = (nodes[split(each)[0]] for each in merge.input[:2])
    while back.op in ("NextIteration", "Identity", "Switch"):
        back = nodes[split(back.input[0])[0]]
    return begin.op == "Enter" and back.name == merge.name


def _is_zero(nodes: dict[str, Message], name: str) -> bool:
    node = nodes[split(name)[0]]
    if node.op in ("Identity", "Fill", "BroadcastTo"):
        return _is_zero(nodes, node.input[1 if node.op == "Fill" else 0])
    value = constant_value(node)
    return node.op == "ZerosLike" or value is not None and not value.any()


# --- batch normalization


def _replace_batch_statistics(part: GraphDef, whole: GraphDef) -> int:
    """Replace the statistics that the source averages by the averages."""
    averages = dict(_averages(whole))
    nodes, everything = by_name(part), by_name(whole)
    done = set()
    instead: dict[tuple[str, int], str] = {}
    for node in list(part.node):
        if is_of_training(node):
            if all(_variable(nodes, each) for each in node.input[3:5]):  # TensorFlow 2 averages in the op
                both = [_variable(nodes, each) for each in node.input[3:5]]
            else:
                both = [averages.get((node.name, index)) for index in (1, 2)]
            if all(both):
                node.input[3:5] = [_read(part, nodes, everything, str(variable)) for variable in both]
                node.attr["is_training"].b = False
                done.add(node.name)
    for key, variable in averages.items():
        if key[0] in nodes and nodes[key[0]].op not in NORMS:
            instead[key] = _read(part, nodes, everything, variable)
            done.add(key[0].rpartition("/")[0])
    rewire(part, instead)
    return len(done)


def _averages(graph: GraphDef) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield each batch statistic and the variable that averages it: v -= (v - statistic) (1 - decay)."""
    nodes = by_name(graph)
    unbiased = {}  # zero-debiased averages: v = biased / (1 - decay^step), where biased is the average
    for node in graph.node:
        value = nodes[split(node.input[1])[0]] if node.op in ("Assign", "AssignVariableOp") else None
        if value is not None and value.op == "RealDiv" and _variable(nodes, value.input[0]):
            unbiased[_variable(nodes, value.input[0])] = _variable(nodes, node.input[0])
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
            if nodes[chain[-1][0]].op in (*NORMS, "Mean", "Squeeze", "Reshape"):  # not the variables of an EMA
                yield from ((key, unbiased.get(variable) or variable) for key in chain)


def _variable(nodes: dict[str, Message], name: str) -> str | None:
    node = nodes[split(name)[0]]
    while node.op in ("Identity", "ReadVariableOp", "Switch", "RefSwitch", "Enter", "RefIdentity", "AssignSub"):
        node = nodes[split(node.input[0])[0]]
    return str(node.name) if node.op in VARIABLES else None


def _read(part: GraphDef, nodes: dict[str, Message], whole: dict[str, Message], variable: str) -> str:
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


def is_mode(node: Message) -> bool:
    """Return True for a placeholder that tells training from inference."""
    if not node.op.startswith("Placeholder") or not _TRAINING.search(node.name):
        return False
    return bool(attribute(node, "dtype") == tf.bool.as_datatype_enum)
