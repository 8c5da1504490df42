"""The ops that a device runs for a training step, from the nodes of its graph.

What is known when a graph is compiled costs nothing: constants, sizes, views. Every other node becomes an op, or some
(a batch normalization has two). Then the passes of the compiler follow: casts where mixed precision changes the type,
layouts, and neighbours that are one op. The rules are in device_ops.json; each is seen in public profiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Sequence

from npu_shim.rehearsal.assess.flat import Flat
from npu_shim.rehearsal.predict import fusion, layouts
from npu_shim.rehearsal.predict.device_graph import Op, tensor_in_memory, types_pattern
from npu_shim.rehearsal.predict.features import DeviceOp
from npu_shim.rehearsal.predict.ops_of_nodes import NodeProperties, OpsOfNodes, properties_of_nodes

_AI_CPU = types_pattern("ai cpu")


@dataclass(frozen=True)
class Run:
    """Runs of an op of the device in a step.

    Attributes:
        op: with its shapes in memory.
        count: how often the step runs it.
        phase: "forward", "backward" or "update".
        on_ai_cpu: True if the AI CPU runs it.
        nodes: places of the nodes of the graph that it computes.
    """

    op: DeviceOp
    count: int
    phase: str
    on_ai_cpu: bool
    nodes: tuple[int, ...]


def ops_of_step(
    flat: Flat,
    is_half: Sequence[bool],
    host: Collection[int],
    trips: dict[str, int],
    family: str,
    half: str = "float16",
    properties: NodeProperties | None = None,
) -> list[Run]:
    """Return the ops that the device runs for a step, in order.

    Args:
        flat: the nodes of the step.
        is_half: for each node, whether mixed precision computes it in 16 bits.
        host: the places of the nodes that run on the host.
        trips: how often each loop runs.
        family: of the processor.
        half: the type of 16 bits.
        properties: of the nodes, if they are known.
    """
    ops = OpsOfNodes(flat.nodes, is_half, host, trips, half, properties or properties_of_nodes(flat.nodes)).ops()
    ops = fusion.with_composed_ops(ops, family)
    ops = layouts.with_casts(ops, half)
    ops = layouts.with_layouts(ops, family)
    ops = fusion.with_fused_ops(ops)
    return [_run_of(op, family) for op in layouts.with_clears(ops, family)]


def _run_of(op: Op, family: str) -> Run:
    inputs = [tensor_in_memory(use.value, use.shape, family) for use in op.inputs]
    outputs = [tensor_in_memory(value, value.shape, family) for value in op.outputs]
    on_ai_cpu = bool(_AI_CPU.match(op.type))
    return Run(DeviceOp(op.type, inputs, outputs), op.times, op.phase, on_ai_cpu, tuple(op.nodes))
