"""The nodes of a step at another batch size, with the shapes that TensorFlow infers."""

from __future__ import annotations

import collections
import copy
import itertools
import re
from typing import Counter, Sequence

from npu_shim._tensorflow import tf_capture
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Graph, GraphDef, Message
from npu_shim.rehearsal.assess.bounds import is_bound_by_input
from npu_shim.rehearsal.assess.flat import QUEUE, Flat, Node, Shape, merged_shape, reads_batch, static_shape
from npu_shim.rehearsal.assess.loops import loop_trip_counts
from npu_shim.rehearsal.assess.sizes import element_count, size_bytes
from npu_shim.rehearsal.predict.gradients import variable_shapes

_FED = re.compile(rf"(Placeholder|PlaceholderWithDefault)$|{QUEUE.pattern}")


def batch_of_step(nodes: Sequence[Node]) -> int | None:
    """Return the first size of most inputs of a step, of the largest of them in a tie; None without such an input."""
    sizes: Counter[int] = collections.Counter()
    bytes_of: Counter[int] = collections.Counter()
    for node in nodes:
        if _is_input(node):
            for dtype, shape in zip(node.dtypes, node.shapes):
                if shape and shape[0]:
                    sizes[shape[0]] += 1
                    bytes_of[shape[0]] += size_bytes(dtype, shape) or 0
    return max(sizes, key=lambda size: (sizes[size], bytes_of[size]), default=None)


def _is_input(node: Node | Message) -> bool:
    return bool(_FED.match(node.op)) or reads_batch(node.op, node.name)


def flat_at_batch(flat: Flat, batch: int, other: int) -> Flat:
    """Return a step at another batch size.

    TensorFlow infers the shapes. Where it cannot, or where a size is written into the graph, tensors behind the inputs
    whose first size is a multiple of the batch follow it.

    Args:
        flat: the nodes at the batch size of the script.
        batch: that size.
        other: the other size.
    """
    scaled = _scaled_shapes(flat.nodes, batch, other)
    definition = _definition_at_batch(flat, batch, other)
    try:
        graph = tf_capture.import_into_new_graph(definition)
        if _set_bounds(definition, flat, graph):
            graph = tf_capture.import_into_new_graph(definition)
    except ValueError:  # a size is written into the graph
        graph = None
    inferred = [_inferred_shapes(graph, node) if graph is not None else node.shapes[:0] for node in flat.nodes]
    nodes = []
    for node, known, shapes in zip(flat.nodes, inferred, scaled):
        nodes.append(copy.copy(node))
        nodes[-1].shapes = [merged_shape(new, shape) for new, shape in itertools.zip_longest(known, shapes)]
    return Flat(nodes, flat.graph if graph is None else graph)


def trips_at_batch(flat: Flat, trips: dict[str, int]) -> dict[str, int]:
    """Return how often the loops of a step run at another batch size, as those over the examples of a batch do.

    Args:
        flat: the nodes at that size.
        trips: at the batch size of the script.
    """
    known = loop_trip_counts(flat.nodes)
    return {name: known.get(name, runs) for name, runs in trips.items()}


def _set_bounds(definition: GraphDef, flat: Flat, graph: Graph) -> bool:
    """Let the bounds of sizes that only values decide follow the inputs of their nodes. Return True if some change."""
    at = {node.name: node for node in definition.node}
    is_changed = False
    for node in flat.nodes:
        if is_bound_by_input(node) and node.definition.op == "Placeholder":
            maker, output = flat.nodes[node.inputs[0][0]], node.inputs[0][1]
            before, after = element_count(maker.shapes[output]), element_count(_inferred_shapes(graph, maker)[output])
            if before and after and before != after:
                is_changed = True
                for number, shape in enumerate(node.shapes):
                    size = at[f"{node.name}__{number}"].attr["shape"].shape.dim[0]
                    size.size = (shape[0] or 0 if shape else 0) * after // before
    return is_changed


def _inferred_shapes(graph: Graph, node: Node) -> list[Shape]:
    """Return the shapes of the outputs of a node; for an opaque one those of the placeholders in its place."""
    if node.definition.op == "NoOp":
        return []
    try:
        outputs = graph.get_operation_by_name(node.name).outputs
    except KeyError:
        names = [f"{node.name}__{output}" for output in range(len(node.dtypes))]
        outputs = [graph.get_operation_by_name(name).outputs[0] for name in names]
    return [static_shape(output) for output in outputs]


def _definition_at_batch(flat: Flat, batch: int, other: int) -> GraphDef:
    definition = flat.graph.as_graph_def()
    inputs, fixed = {node.name: node for node in flat.nodes if _is_input(node)}, variable_shapes(flat.nodes)
    for node in definition.node:
        if node.op == "Placeholder":
            # stands for a node whose size TensorFlow leaves open, such as one that holds an activation or a weight
            shape = node.attr["shape"].shape
            if node.name in inputs or tuple(dim.size for dim in shape.dim) not in fixed:
                _set_first_size(shape, batch, other, node.name not in inputs and batch > 1)
        elif _is_input(node):
            for shape in node.attr["output_shapes"].list.shape:
                _set_first_size(shape, batch, other)
        elif node.op == "Const" and node.name in inputs and node.attr["dtype"].type != tf.bool.as_datatype_enum:
            # a fed size
            value = tf.make_ndarray(node.attr["value"].tensor)
            value = (value == batch) * other + (value != batch) * value
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.as_dtype(node.attr["dtype"].type)))
    return definition


def _set_first_size(shape: Message, batch: int, other: int, is_multiple: bool = False) -> None:
    size = shape.dim[0].size if shape.dim else 0
    if size == batch or is_multiple and size > 0 and size % batch == 0:
        shape.dim[0].size = size // batch * other


def _scaled_shapes(nodes: Sequence[Node], batch: int, other: int) -> list[list[Shape]]:
    """Return the shapes with the first size of what is computed from inputs in proportion to the batch."""
    follows, fixed = [_is_input(node) for node in nodes], variable_shapes(nodes)
    readers: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        for source, _ in node.inputs:
            readers.setdefault(source, []).append(place)
    reached = [place for place, is_input in enumerate(follows) if is_input]
    while reached:
        for reader in readers.get(reached.pop(), ()):
            if not follows[reader]:
                follows[reader] = True
                reached.append(reader)

    def scaled(shape: Shape) -> Shape:
        if not shape or not shape[0] or shape[0] % batch or shape in fixed:
            return shape
        return (shape[0] // batch * other, *shape[1:])

    return [
        [scaled(shape) for shape in node.shapes] if follows[place] else node.shapes for place, node in enumerate(nodes)
    ]
