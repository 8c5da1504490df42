"""The inventory of a graph as rows: operators, host parts, open shapes, types, collectives and variables."""

from __future__ import annotations

import collections
from typing import Sequence

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.op_types import VARIABLES
from npu_shim.rehearsal.assess import device_forms, memory, work
from npu_shim.rehearsal.assess.assessment import (
    Collective,
    Cut,
    DynamicShape,
    JsonShape,
    OnHost,
    Operators,
    RareType,
    Variable,
    Variables,
)
from npu_shim.rehearsal.assess.flat import Node, Shape
from npu_shim.rehearsal.assess.lines import creating_lines
from npu_shim.rehearsal.assess.operators import DEVICE, INPUT, Lists
from npu_shim.rehearsal.assess.partition import ON_HOST_ANYWAY, Partition
from npu_shim.rehearsal.assess.sizes import element_count, size_bytes

_RARE_TYPES = ("float64", "string", "complex64", "complex128")
_MOST_LINES = 3
_NO_SHAPE = ("variant", "resource")


def operator_rows(nodes: Sequence[Node], done: work.Work, lists: Lists, folder: str) -> list[Operators]:
    """Return a row for each operator type: number, place, work, and the lines of those off the device."""
    by_type: dict[str, list[int]] = collections.defaultdict(list)
    for i, node in enumerate(nodes):
        by_type[node.op].append(i)
    rows = []
    for op, places in by_type.items():
        status = DEVICE if op in ON_HOST_ANYWAY else lists.device_status(op)
        flops, size = sum(done.flops[i] for i in places), sum(done.bytes[i] for i in places)
        lines = _creating_lines(nodes, places, folder) if status not in (DEVICE, INPUT) else []
        rows.append(Operators(op, len(places), status, flops, size, lines))
    return sorted(rows, key=lambda row: (-row.flops, -row.count, row.op))


def _creating_lines(nodes: Sequence[Node], places: Sequence[int], folder: str) -> list[str]:
    """Return the innermost lines of the script that create some nodes, the most frequent first."""
    counted = collections.Counter(line for i in places for line in creating_lines(nodes[i].source, folder)[:1])
    return [line for line, _ in counted.most_common(_MOST_LINES)]


def summary_of_host_parts(nodes: Sequence[Node], parts: Partition, where: dict[int, list[str]], mixed: bool) -> Cut:
    """Return what runs on the host, and how the step is cut."""
    by_type: dict[str, list[int]] = collections.defaultdict(list)
    for i in parts.host:
        by_type[nodes[i].op].append(i)
    pulled = set(parts.pulled)
    host = [
        OnHost(
            op,
            len(places),
            pulled=sum(1 for i in places if i in pulled),
            cpu=tf_graph.has_cpu_kernel(op),
            lines=list(dict.fromkeys(line for i in places for line in where[i][:1]))[:_MOST_LINES],
        )
        for op, places in by_type.items()
    ]
    return Cut(sorted(host, key=lambda row: (-row.count, row.op)), parts.clusters, parts.cut, parts.loops, mixed)


def dynamic_shape_rows(nodes: Sequence[Node], folder: str, unknown: Sequence[int] = ()) -> list[DynamicShape]:
    """Return the operators that bring sizes into the graph that it does not know, with the lines that create them.

    An operator whose inputs, or what computes its shape, are open already brings in nothing new, unless the inputs of
    this run have sizes and its outputs have none: the values decide these.

    Args:
        nodes: of the graph.
        folder: of the script.
        unknown: places of the nodes that make tensors without a size in this run, one for each tensor.
    """
    rows: list[DynamicShape] = []
    follows = [False] * len(nodes)
    order = memory.execution_order(nodes)
    causes = _causes_of_dynamic_shapes(nodes, order)
    tensors = collections.Counter(causes[i] for i in unknown)
    for i in order:
        node = nodes[i]
        opens = [
            k for k, shape in enumerate(node.declared) if _has_unknown_size(shape) and node.dtypes[k] not in _NO_SHAPE
        ]
        follows[i] = any(
            follows[s] or (_has_unknown_size(nodes[s].declared[k]) and nodes[s].dtypes[k] not in _NO_SHAPE)
            for s, k in node.inputs
        )
        is_new = not follows[i] and node.op not in VARIABLES and node.op != "BroadcastGradientArgs"
        if opens and (is_new or tensors[i]):
            shape, now = node.declared[opens[0]], node.shapes[opens[0]]
            in_this_run = None if _has_unknown_size(now) else shape_to_json(now)
            lines = creating_lines(node.source, folder)
            rows.append(DynamicShape(node.op, node.name, shape_to_json(shape), in_this_run, tensors[i], lines))
    return rows


def _causes_of_dynamic_shapes(nodes: Sequence[Node], order: Sequence[int]) -> dict[int, int]:
    """Return, for nodes after one whose size the values decide, the place of that one.

    Of several inputs, integers of a known shape come first, because they may be the size, then inputs without a size.
    """
    causes: dict[int, int] = {}
    for i in order:
        node = nodes[i]
        inputs = [(s, k) for s, k in node.inputs if s in causes]
        opens = [s for s, k in inputs if _has_unknown_size(nodes[s].shapes[k])]
        sizes = [s for s, k in inputs if s not in opens and nodes[s].dtypes[k] in ("int32", "int64")]
        candidates = sizes or opens or [s for s, _ in inputs]
        if candidates:
            causes[i] = causes[candidates[0]]
        elif any(_has_unknown_size(shape) and dtype not in _NO_SHAPE for shape, dtype in zip(node.shapes, node.dtypes)):
            causes[i] = i
    return causes


def _has_unknown_size(shape: Shape) -> bool:
    return element_count(shape) is None


def rare_type_rows(nodes: Sequence[Node], folder: str) -> list[RareType]:
    """Return a row for each type of tensors that a card computes slowly or not at all."""
    rows = []
    for dtype in _RARE_TYPES:
        places = [i for i, node in enumerate(nodes) if dtype in node.dtypes and not _is_text_constant(node)]
        if places:
            ops = collections.Counter(nodes[i].op for i in places)
            tensors = sum(nodes[i].dtypes.count(dtype) for i in places)
            rows.append(
                RareType(dtype, tensors, [op for op, _ in ops.most_common()], _creating_lines(nodes, places, folder))
            )
    return rows


def _is_text_constant(node: Node) -> bool:
    """Return True for text in constants: names of files and summaries, messages of assertions."""
    return node.op == "Const" and node.dtypes == ["string"]


def collective_rows(nodes: Sequence[Node]) -> list[Collective]:
    """Return a row for each collective, with what it moves."""
    sizes: dict[str, list[int]] = {}
    for node in nodes:
        if device_forms.COLLECTIVE.match(node.op):
            size = sum(size_bytes(dtype, shape) or 0 for dtype, shape in zip(node.dtypes, node.shapes))
            sizes.setdefault(node.op, []).append(size)
    return [Collective(op, len(moved), sum(moved)) for op, moved in sizes.items()]


def variables_summary(nodes: Sequence[Node]) -> Variables:
    """Return number and size of the variables, and the largest ones."""
    rows = []
    for node in nodes:
        if node.op in VARIABLES:
            shape, dtype = variable_type(node)
            rows.append(Variable(_variable_name(node), shape_to_json(shape), dtype, size_bytes(dtype, shape) or 0))
    return Variables(len(rows), sum(row.bytes for row in rows), sorted(rows, key=lambda row: -row.bytes)[:5])


def variable_type(node: Node) -> tuple[Shape, str]:
    """Return the shape and type of a variable."""
    if node.op != "VarHandleOp":
        return node.shapes[0], node.dtypes[0]
    attributes = node.definition.attr
    shape = tf_api.tf.TensorShape(attributes["shape"].shape)
    known = shape.rank is not None and shape.is_fully_defined()
    return tuple(shape.as_list()) if known else None, tf_api.tf.as_dtype(attributes["dtype"].type).name


def _variable_name(node: Node) -> str:
    shared = node.definition.attr["shared_name"].s.decode() if "shared_name" in node.definition.attr else ""
    return shared.partition(":")[0] or node.name


def shape_to_json(shape: Shape) -> JsonShape:
    """Return a shape for JSON."""
    return None if shape is None else list(shape)
