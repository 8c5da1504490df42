"""The sizes that TensorFlow leaves open and this run decides, by its batch and by what loops keep for gradients."""

from __future__ import annotations

from typing import Iterator, Sequence

import numpy as np

from npu_shim._tensorflow.op_types import REDUCTIONS
from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Node, Shape
from npu_shim.rehearsal.assess.held_tensors import WHOLE, Read, holder_of, reads_of_held
from npu_shim.rehearsal.assess.known_values import Key, known_values
from npu_shim.rehearsal.assess.sizes import element_count

_SHAPED_BY = {"Fill": 0, "Reshape": 1, "BroadcastTo": 1}  # the input that is the shape of the result
_LOOP_VARIABLES = ("Enter", "Merge")  # they have the size of the first run of a loop; TensorFlow says nothing


def is_open(node: Node) -> bool:
    """Return True if a size of a result is not known."""
    return any(element_count(shape) is None for shape in node.shapes)


def sizes_of_run(nodes: Sequence[Node]) -> dict[int, list[Shape]]:
    """Return shapes for nodes of which a size is not known, by their places."""
    reads = reads_of_held(nodes)
    opens = [place for place, node in enumerate(nodes) if is_open(node)]
    needed = {place: list(_values_for(nodes, place)) for place in opens}
    known = known_values(nodes, [key for keys in needed.values() for key in keys])
    result: dict[int, list[Shape]] = {}
    for place in opens:
        node, values = nodes[place], [known[key] for key in needed[place] if key in known]
        shapes = list(node.shapes)
        if place in reads:
            element = reads[place].shape(nodes)
            number = _number_of_elements(nodes, node, values, reads[place])
            if element is not None and (node.op not in WHOLE or number is not None):
                shapes[reads[place].output] = element if number is None else (number, *element)
        elif node.op in _LOOP_VARIABLES and node.inputs:
            source, output = node.inputs[0]
            shapes[0] = nodes[source].shapes[output]
        elif values and len(values) == len(needed[place]):
            shapes[0] = _shape_by_values(nodes, node, values)
        if shapes != node.shapes and all(element_count(shape) is not None for shape in shapes):
            result[place] = shapes
    return result


def _values_for(nodes: Sequence[Node], place: int) -> Iterator[Key]:
    """Yield the tensors whose values decide the size of a result."""
    node = nodes[place]
    if node.op == "Range":
        yield from node.inputs
    elif node.op in _SHAPED_BY and len(node.inputs) == 2:
        yield node.inputs[_SHAPED_BY[node.op]]
    elif node.op in (*REDUCTIONS, "Tile") and len(node.inputs) == 2:
        yield node.inputs[1]
    elif node.op == "TensorListStack":
        holder = nodes[holder_of(nodes, place)]
        yield from holder.inputs[1:] if holder.op == "TensorListReserve" else ()


def _number_of_elements(nodes: Sequence[Node], node: Node, values: Sequence[Value], read: Read) -> int | None:
    if node.op == "TensorArrayGatherV3" and len(node.inputs) > 1:
        source, output = node.inputs[1]
        return element_count(nodes[source].shapes[output])
    if node.op == "TensorListStack" and not values and read.axes:
        return (nodes[read.written[0]].shapes[read.written[1]] or (None,))[0]
    return int(values[0]) if node.op == "TensorListStack" and values else None


def _shape_by_values(nodes: Sequence[Node], node: Node, values: Sequence[Value]) -> Shape:
    if node.op == "Range":
        return (len(np.arange(*values)),)
    numbers = [int(number) for number in values[0].reshape(-1)]
    source, output = node.inputs[0]
    before = nodes[source].shapes[output]
    if before is None and node.op not in _SHAPED_BY:
        return None
    if node.op == "Tile":
        return tuple(None if size is None else size * number for size, number in zip(before or (), numbers))
    if node.op in REDUCTIONS and before is not None:
        axes = {axis % len(before) for axis in numbers}
        keeps = node.definition.attr["keep_dims"].b
        return tuple(1 if axis in axes else size for axis, size in enumerate(before) if keeps or axis not in axes)
    if -1 in numbers:
        whole, rest = element_count(before), int(np.prod([number for number in numbers if number != -1]))
        numbers = [number if number != -1 else whole // rest if whole and rest else -1 for number in numbers]
    return tuple(None if number < 0 else number for number in numbers)
