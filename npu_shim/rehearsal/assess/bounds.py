"""Bounds for sizes that only values decide, as those of what a mask selects: not more than there is."""

from __future__ import annotations

import copy
import re
from typing import NamedTuple, Sequence

from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Flat, Node, Shape, infer_shapes
from npu_shim.rehearsal.assess.known_values import Key, known_values
from npu_shim.rehearsal.assess.run_sizes import is_open, sizes_of_run
from npu_shim.rehearsal.assess.sizes import element_count

_FIRST = re.compile(r"(Unique(WithCounts)?(V2)?|ListDiff|DynamicPartition)$")  # as many rows as the first input has
_SUPPRESSION = re.compile(r"NonMaxSuppression(V\d|WithOverlaps)?$")
_CUTS = frozenset({"Slice", "StridedSlice"})
_MOST_ROUNDS = 12  # in which sizes follow from others


class Bounded(NamedTuple):
    """Nodes with sizes, and the places of those whose sizes are bounds."""

    flat: Flat
    places: frozenset[int]


def flat_with_bounds(nodes: Sequence[Node], flat: Flat) -> Bounded:
    """Return nodes of a flat graph with bounds for the sizes that only values decide, as far as they have some.

    Args:
        nodes: all or some of those of the graph.
        flat: the graph.
    """
    if len(nodes) < len(flat.nodes):
        flat = _inferred(nodes, {})
    stands: dict[int, list[Shape]] = {}
    was_open: list[bool] = []
    for _ in range(_MOST_ROUNDS):
        new = {} if was_open else sizes_of_run(flat.nodes)
        if not new:  # what this run decides comes first
            was_open = was_open or [is_open(node) for node in flat.nodes]
            new = {**_bounds(flat.nodes), **sizes_of_run(flat.nodes)}
        new = {place: shapes for place, shapes in new.items() if place not in stands}
        if not new:
            break
        stands.update(new)
        flat = _inferred(flat.nodes, stands)
    places = (place for place, is_bound in enumerate(was_open) if is_bound and not is_open(flat.nodes[place]))
    return Bounded(flat, frozenset(places))


def is_bound_by_input(node: Node) -> bool:
    """Return True for an operator whose results have at most as many rows as its input."""
    return node.op == "Where" or node.op in _CUTS or bool(_FIRST.match(node.op))


def _bounds(nodes: Sequence[Node]) -> dict[int, list[Shape]]:
    numbers = known_values(nodes, [node.inputs[2] for node in nodes if _has_most(node)])
    bounds = {place: _bounds_of(nodes, node, numbers) for place, node in enumerate(nodes)}
    return {place: shapes for place, shapes in bounds.items() if shapes}


def _has_most(node: Node) -> bool:
    return bool(_SUPPRESSION.match(node.op)) and len(node.inputs) > 2


def _inferred(nodes: Sequence[Node], stands: dict[int, list[Shape]]) -> Flat:
    """Return copies of nodes with the shapes that follow from those that stand for some of them."""
    known = {
        place: node.shapes
        for place, node in enumerate(nodes)
        if node.definition.op == "Placeholder" and node.op != "Placeholder"
    }
    return infer_shapes([copy.copy(node) for node in nodes], {**known, **stands})


def _bounds_of(nodes: Sequence[Node], node: Node, numbers: dict[Key, Value]) -> list[Shape]:
    """Return bounds for the shapes of a node; [] if it needs or has none."""
    if not node.inputs or not is_open(node):
        return []
    source, output = node.inputs[0]
    before = nodes[source].shapes[output]
    number = element_count(before)
    if before is None or number is None:
        return []
    if node.op == "Where":
        return [(number, len(before))]
    if node.op in _CUTS and node.shapes[0] is not None and len(node.shapes[0]) == len(before):
        return [tuple(most if size is None else size for size, most in zip(node.shapes[0], before))]
    rows = before[0] if before else 1
    if _has_most(node):
        most = numbers.get(node.inputs[2])
        rows = rows if most is None else min(rows or 0, int(most))
    elif not _FIRST.match(node.op):
        return []
    return [None if shape is None else tuple(rows if size is None else size for size in shape) for shape in node.shapes]
