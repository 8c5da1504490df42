"""Floating-point operations and bytes of each operator of a step.

The formulas are TensorFlow's own, those of its profiler, where it has one for the operator. The others are here, in the
profiler's convention: a multiplication and an addition are two operations, and a function of an element is one.
"""

from __future__ import annotations

import re
from typing import Callable, NamedTuple, Sequence

from npu_shim._tensorflow import tf_capture
from npu_shim.rehearsal.assess.device_forms import COLLECTIVE
from npu_shim.rehearsal.assess.flat import Flat, Node, Shape
from npu_shim.rehearsal.assess.op_types import op_type_pattern
from npu_shim.rehearsal.assess.sizes import element_count, size_bytes

# What the matrix unit computes; all else runs on the vector unit.
MATRIX = re.compile(
    r"^(Conv[23]D|DepthwiseConv2d|(Batch|Sparse)?MatMul|Einsum|BasicLSTMCell|DynamicRnn|DynamicGru|BlockLSTM)"
)
# They move, name or order values, or are no part of the computation.
_NO_WORK = op_type_pattern("no work")
_ONE = op_type_pattern("one operation an element")
_READS = op_type_pattern("reads its input")
# Operations for each element of the variable (the first input).
_UPDATES = {
    "GradientDescent": 2, "Momentum": 4, "KerasMomentum": 4, "Adagrad": 5, "AdagradV2": 6, "Adam": 12, "AdaMax": 9,
    "AdamWithAmsgrad": 13, "RMSProp": 9, "CenteredRMSProp": 13, "Adadelta": 12, "Ftrl": 16, "FtrlV2": 18,
    "ProximalAdagrad": 10, "ProximalGradientDescent": 7, "AddSign": 8, "PowerSign": 9, "AdagradDA": 9,
}  # fmt: skip


class Work(NamedTuple):
    """Work of a step.

    Attributes:
        flops: of each node; 0 where the operator moves data, and where the number is not known.
        bytes: that each node reads and writes; 0 for views.
        unknown: operator types whose number is not known, with why.
        by_profiler: operator types with a formula of TensorFlow's profiler.
    """

    flops: list[int]
    bytes: list[int]
    unknown: dict[str, str]
    by_profiler: list[str]


def work_of_nodes(flat: Flat, trips: dict[str, int]) -> Work:
    """Return the work of each node; nodes in a loop count as often as it runs, once if that is not known."""
    flops, moved = [], []
    unknown: dict[str, str] = {}
    by_profiler = set()
    for node in flat.nodes:
        times = repetitions_in_step(node, trips)
        number = _node_flops(flat, node)
        if node.op in tf_capture.HAS_FLOPS and node.op not in _OWN and number is not None:
            by_profiler.add(node.op)
        if number is None:
            unknown[node.op] = "a shape is not known" if _has_formula(node.op) else "no formula"
        flops.append((number or 0) * times)
        moved.append(_moved_bytes(flat.nodes, node) * times)
    return Work(flops, moved, unknown, sorted(by_profiler))


def repetitions_in_step(node: Node, trips: dict[str, int]) -> int:
    """Return how often a node runs in a step: the product of the loops around it."""
    times, inside = 1, node.inside
    while inside:
        times *= trips.get(inside, 1)
        inside = max((other for other in trips if inside.startswith(other + "/")), key=len, default="")
    return times


def _has_formula(op: str) -> bool:
    return bool(
        op in tf_capture.HAS_FLOPS or _ONE.match(op) or _READS.match(op) or _update_flops_per_element(op) or op in _OWN
    )


def _update_flops_per_element(op: str) -> int | None:
    match = re.match(r"^(Resource)?(Sparse)?Apply(\w+)$", op)
    return _UPDATES.get(match.group(3)) if match else None


def _input_shapes(flat: Flat, node: Node) -> list[Shape]:
    return [flat.nodes[source].shapes[output] for source, output in node.inputs]


def _node_flops(flat: Flat, node: Node) -> int | None:
    if _NO_WORK.match(node.op) or COLLECTIVE.match(node.op):
        return 0
    shapes = _input_shapes(flat, node)
    if node.op in _OWN:
        return _OWN[node.op](node, shapes)
    if node.op in tf_capture.HAS_FLOPS and node.definition is not None:
        return tf_capture.flops_of_node(flat.graph, flat.graph.get_operation_by_name(node.name).node_def)
    per_element = _update_flops_per_element(node.op)
    if per_element is not None:
        # a sparse update changes the rows of the gradient only
        gradient = max(
            (shape for shape in shapes if element_count(shape) is not None), key=_known_element_count, default=None
        )
        variable = shapes[0] if element_count(shapes[0]) else gradient
        if node.op.startswith(("ResourceSparse", "Sparse")):
            variable = shapes[-2] if len(shapes) > 1 else None
        return _times_if_known(per_element, element_count(variable))
    if _ONE.match(node.op):
        out = [element_count(shape) for shape in node.shapes] or [element_count(shape) for shape in shapes[1:2]]
        return _times_if_known(1, out[0] if out else None)
    if _READS.match(node.op):
        return _times_if_known(1, element_count(shapes[0]) if shapes else None)
    return None


def _known_element_count(shape: Shape) -> int:
    return element_count(shape) or 0


def _times_if_known(factor: int, number: int | None) -> int | None:
    return None if number is None else factor * number


def _batch_matmul_flops(node: Node, shapes: Sequence[Shape]) -> int | None:
    """2 times the elements of the result times the length that is summed over."""
    first = shapes[0]
    if not first or len(first) < 2:
        return None
    inner = first[-2] if node.definition.attr["adj_x"].b else first[-1]
    return None if inner is None else _times_if_known(2 * inner, element_count(node.shapes[0]))


def _convolution_gradient_flops(node: Node, shapes: Sequence[Shape]) -> int | None:
    """The operations of the convolution itself: 2 times the elements of its result times those of one filter.

    TensorFlow's profiler takes the input in the place of the result, which is too much with strides or without padding.
    """
    result = shapes[-1]
    kernel = node.shapes[0] if "Filter" in node.op else shapes[1]
    if not kernel or element_count(kernel) is None or not kernel[-1]:
        return None
    return _times_if_known(2 * (element_count(kernel) or 0) // kernel[-1], element_count(result))


def _depthwise_gradient_flops(node: Node, shapes: Sequence[Shape]) -> int | None:
    """2 times the elements of the result's gradient times the area of the filter."""
    kernel = node.shapes[0] if "Filter" in node.op else shapes[1]
    if not kernel or kernel[0] is None or kernel[1] is None:
        return None
    return _times_if_known(2 * kernel[0] * kernel[1], element_count(shapes[-1]))


def _einsum_flops(node: Node, shapes: Sequence[Shape]) -> int | None:
    """2 times the product of the sizes of all letters, for two operands."""
    equation = node.definition.attr["equation"].s.decode().replace(" ", "").partition("->")[0]
    sizes: dict[str, int] = {}
    for letters, shape in zip(equation.split(","), shapes):
        if shape is None or None in shape or "..." in letters or len(letters) != len(shape):
            return None
        sizes.update((letter, size or 0) for letter, size in zip(letters, shape))
    number = 2 if len(shapes) > 1 else 1
    for size in sizes.values():
        number *= size
    return number


def _flops_per_input_element(factor: int) -> Callable[[Node, Sequence[Shape]], int | None]:
    return lambda node, shapes: _times_if_known(factor, element_count(shapes[0]) if shapes else None)


_OWN: dict[str, Callable[[Node, Sequence[Shape]], int | None]] = {
    **{name: _batch_matmul_flops for name in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")},
    **{f"Conv2DBackprop{kind}": _convolution_gradient_flops for kind in ("Input", "Filter")},
    **{f"Conv3DBackprop{kind}V2": _convolution_gradient_flops for kind in ("Input", "Filter")},
    **{f"DepthwiseConv2dNativeBackprop{kind}": _depthwise_gradient_flops for kind in ("Input", "Filter")},
    "Einsum": _einsum_flops,
    # mean: 1, variance: 3, normalization: 4 for each element; the gradient has two sums and five operations more
    **{name: _flops_per_input_element(8) for name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")},
    **{
        name: _flops_per_input_element(11)
        for name in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
    },
    # maximum, difference, exponential, sum, quotient or logarithm, and the gradient
    **{
        name: _flops_per_input_element(6)
        for name in ("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
    },
    "LogSoftmax": _flops_per_input_element(5),
    "AddN": lambda node, shapes: _times_if_known(len(shapes) - 1, element_count(node.shapes[0])),
    "ResourceScatterAdd": lambda node, shapes: element_count(shapes[-1]),
    "ScatterAdd": lambda node, shapes: element_count(shapes[-1]),
    "ResourceScatterSub": lambda node, shapes: element_count(shapes[-1]),
}
_VIEWS = op_type_pattern("no bytes")
_GATHERS = re.compile(r"^(Resource)?Gather(V2)?$")
_CHANGES = re.compile(
    r"^((Resource)?(Sparse)?Apply\w+|(?P<only_writes>Assign|AssignVariableOp|(Resource)?ScatterUpdate)|"
    r"Assign(Add|Sub)(VariableOp)?|(Resource)?Scatter(Add|Sub|Mul|Div|Min|Max))$"
)


def _moved_bytes(nodes: Sequence[Node], node: Node) -> int:
    if _VIEWS.match(node.op):
        return 0
    inputs = [nodes[source] for source, _ in node.inputs]
    read = [
        size_bytes(maker.dtypes[output], maker.shapes[output]) or 0 for maker, (_, output) in zip(inputs, node.inputs)
    ]
    written = sum(size_bytes(dtype, shape) or 0 for dtype, shape in zip(node.dtypes, node.shapes))
    if _GATHERS.match(node.op):  # it reads the rows that it returns
        return 2 * written + sum(read[1:2])
    changed = _CHANGES.match(node.op)
    if changed is None:
        return sum(read) + written
    # It reads and writes as many elements of each variable as the value has: all, or the rows of a sparse gradient.
    is_handle = [maker.dtypes[output] == "resource" for maker, (_, output) in zip(inputs, node.inputs)]
    variables = sum(is_handle) or _common_prefix_length(
        [maker.shapes[output] for maker, (_, output) in zip(inputs, node.inputs)]
    )
    given = read[variables:]
    each_way = 1 if changed.group("only_writes") else 2
    return each_way * variables * max(given, default=0) + sum(given)


def _common_prefix_length(shapes: Sequence[Shape]) -> int:
    return next((number for number, shape in enumerate(shapes) if shape != shapes[0]), len(shapes) - 1)
