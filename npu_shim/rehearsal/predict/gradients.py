"""The gradients of a step and its collectives: their bytes, and when they are ready."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from npu_shim._tensorflow.op_types import VARIABLES
from npu_shim.rehearsal.assess.device_forms import COLLECTIVE
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.inventory import variable_type
from npu_shim.rehearsal.assess.sizes import size_bytes
from npu_shim.rehearsal.assess.training_ops import GRADIENT_SCOPE, UPDATE_OPS
from npu_shim.rehearsal.predict.ranks import Message

_BY_ROWS = re.compile(r"Sparse|Segment|Scatter")
_SUMS = re.compile(r"AllReduce|ReduceScatter")


def gradient_outputs(nodes: Sequence[Node]) -> list[tuple[int, int]]:
    """Return node and output of each gradient of a variable: what leaves the backward pass, else what updates read."""
    readers: dict[tuple[int, int], list[Node]] = {}
    for node in nodes:
        for key in node.inputs:
            readers.setdefault(key, []).append(node)
    shapes = variable_shapes(nodes)
    keys = list(_gradients_in_scope(nodes, readers, shapes)) or list(_inputs_of_updates(nodes))
    return list(dict.fromkeys(keys))


def messages_of_step(nodes: Sequence[Node], ends: Sequence[float]) -> list[Message]:
    """Return the gradients of a step as messages.

    Args:
        nodes: of the step.
        ends: the seconds of a step after which each node has its results.
    """
    shapes, messages = variable_shapes(nodes), []
    for place, output in gradient_outputs(nodes):
        shape = nodes[place].shapes[output]
        size = size_bytes(nodes[place].dtypes[output], shape)
        messages.append(Message(size or 0, ends[place], tuple(shape or ()) not in shapes))
    return messages


def collectives_of_step(nodes: Sequence[Node], ends: Sequence[float]) -> list[Message]:
    """Return the collectives that a step has already, in the order in which they can start."""
    collectives = []
    for node in nodes:
        if COLLECTIVE.match(node.op):
            size = sum(size_bytes(dtype, shape) or 0 for dtype, shape in zip(node.dtypes, node.shapes))
            ready = max((ends[source] for source, _ in node.inputs), default=0.0)
            collectives.append(Message(size, ready, not _SUMS.search(node.op)))
    return sorted(collectives, key=lambda message: message.ready)


def variable_shapes(nodes: Sequence[Node]) -> set[tuple[int | None, ...]]:
    """Return the known shapes of the variables of a step."""
    shapes = [variable_type(node)[0] for node in nodes if node.op in VARIABLES]
    return {tuple(shape) for shape in shapes if shape is not None}


def _gradients_in_scope(
    nodes: Sequence[Node], readers: dict[tuple[int, int], list[Node]], shapes: set[tuple[int | None, ...]]
) -> Iterator[tuple[int, int]]:
    """Yield what leaves the backward pass with the shape of a variable, or as some of its rows."""
    rows = {shape[1:] for shape in shapes if shape}
    inside = {node.name for node in nodes if GRADIENT_SCOPE.search(node.name)}
    for node in nodes:  # a tape adds the parts of a gradient outside its scope
        if node.op == "AddN" and inside.issuperset(nodes[source].name for source, _ in node.inputs):
            inside.add(node.name)
    for place, node in enumerate(nodes):
        for output, (dtype, shape) in enumerate(zip(node.dtypes, node.shapes)):
            if shape is None or "float" not in dtype or node.name not in inside:
                continue
            outside = [reader for reader in readers.get((place, output), ()) if reader.name not in inside]
            by_rows = shape[1:] in rows and any(_BY_ROWS.search(reader.op) for reader in outside)
            if outside and (shape in shapes or (shape and by_rows)):
                yield place, output


def _inputs_of_updates(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    for node in nodes:
        if UPDATE_OPS.match(node.op):
            names = [argument.name for argument in node.source.op_def.input_arg]
            yield from (key for name, key in zip(names, node.inputs) if name in ("grad", "delta"))
