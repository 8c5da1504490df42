"""Estimates for a graph: its work, what mixed precision reduces, and a bound on the time of a step."""

from __future__ import annotations

import collections
from typing import Sequence

from npu_shim._tensorflow.op_types import VARIABLES
from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess import precision, work
from npu_shim.rehearsal.assess.assessment import Loop, MixedPrecision, NotCounted, OpCount, Roofline, WorkOfStep
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.loops import loop_names
from npu_shim.rehearsal.assess.operators import Lists
from npu_shim.rehearsal.assess.partition import ON_HOST_ANYWAY
from npu_shim.rehearsal.assess.products import Product
from npu_shim.rehearsal.assess.sizes import size_bytes


def work_of_step(nodes: Sequence[Node], work_of_nodes: work.Work, trip_counts: dict[str, int]) -> WorkOfStep:
    """Return the work of a step."""
    return WorkOfStep(
        flops=sum(work_of_nodes.flops),
        matrix_flops=sum(n for n, node in zip(work_of_nodes.flops, nodes) if work.MATRIX.match(node.op)),
        bytes=sum(work_of_nodes.bytes),
        by_profiler=work_of_nodes.by_profiler,
        unknown=[NotCounted(op, why) for op, why in sorted(work_of_nodes.unknown.items())],
        loops=[Loop(name, trip_counts.get(name)) for name in loop_names(nodes)],
    )


def mixed_precision_of(
    nodes: Sequence[Node], work_of_nodes: work.Work, lists: Lists, parameters: dict[str, Value]
) -> MixedPrecision:
    """Return the operators that mixed precision reduces and keeps."""
    half = precision.are_nodes_in_half(nodes, lists)
    mode = parameters.get("precision_mode_v2") or parameters.get("precision_mode") or b""
    matrix = [(n, is_half) for n, node, is_half in zip(work_of_nodes.flops, nodes, half) if work.MATRIX.match(node.op)]
    total = sum(n for n, _ in matrix)
    own = [i for i, node in enumerate(nodes) if "float32" in node.dtypes and node.op not in VARIABLES | ON_HOST_ANYWAY]
    return MixedPrecision(
        mode=mode.decode() if isinstance(mode, bytes) else str(mode),
        reduced=_op_counts(nodes, [i for i in own if half[i]]),
        kept=_op_counts(nodes, [i for i in own if not half[i]]),
        matrix_share=sum(n for n, is_half in matrix if is_half) / total if total else 0.0,
    )


def _op_counts(nodes: Sequence[Node], places: Sequence[int]) -> list[OpCount]:
    return [OpCount(op, n) for op, n in collections.Counter(nodes[i].op for i in places).most_common()]


def roofline_of(
    nodes: Sequence[Node],
    work_of_nodes: work.Work,
    step: WorkOfStep,
    variables: int,
    activations: int,
    product: Product,
) -> Roofline:
    """Return a bound on the time of a step.

    Args:
        nodes, work_of_nodes, step: of the graph.
        variables, activations: their bytes.
        product: that runs the step.
    """
    compute = step.matrix_flops / product.flops
    inputs = sum(
        size_bytes(dtype, shape) or 0
        for node in nodes
        if node.op in ("Placeholder", "IteratorGetNext")
        for dtype, shape in zip(node.dtypes, node.shapes)
    )
    moved = (2 * variables + inputs) / product.bandwidth
    one_by_one = sum(
        max(flops / product.flops if work.MATRIX.match(node.op) else 0.0, size / product.bandwidth)
        for flops, size, node in zip(work_of_nodes.flops, work_of_nodes.bytes, nodes)
    )
    return Roofline(
        product=product.name,
        source=product.source,
        bound_seconds=max(compute, moved),
        bound_by="matrix unit" if compute >= moved else "memory",
        operators_seconds=one_by_one,
        memory_share=(activations + variables) / product.memory if product.memory else None,
    )
