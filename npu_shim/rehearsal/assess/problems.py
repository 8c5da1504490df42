"""The parts of a graph that would not run on the card."""

from __future__ import annotations

import re
from typing import Iterator

from npu_shim._tensorflow import tf_graph
from npu_shim.rehearsal.assess.assessment import Graph, Problem

_SUMMARY = re.compile(r"^(\w*Summary\w*|WriteSummary)$")  # they run on the host after the device's part of a step


def problems_of_graph(graph: Graph) -> Iterator[Problem]:
    """Yield what would not run on the card in a graph."""
    for host in graph.partition.host:
        if _SUMMARY.match(host.op):
            continue
        if host.pulled == host.count:
            why = "runs on the host, because it shares a resource, string or reference with a node of the host"
        elif host.cpu:
            why = "runs on the host: the device has no such operator"
        else:
            why = "does not run: neither the device nor the CPU has it"
        yield Problem(graph.name, host.op, why, host.lines)
    for name in graph.partition.loops:
        why = "runs on the host as a whole: it contains an operator that the device does not have"
        yield Problem(graph.name, name, why, [])
    old = sorted({row.op for row in graph.operators} & tf_graph.OLD_CONTROL_FLOW)
    if old and graph.dynamic_shapes:
        why = (
            "loops and conditions of TensorFlow 1, which a graph with dynamic shapes cannot have on the device. Call "
            "tf.enable_control_flow_v2() and tf.enable_resource_variables() after the import"
        )
        yield Problem(graph.name, ", ".join(old), why, [])
    cut = graph.partition.outside_largest
    if cut and not graph.partition.mix_compile_mode:
        why = (
            "run on the host: host operators cut the step, and only the largest cluster goes to the device. Set "
            "mix_compile_mode, or move the host operators out of the step"
        )
        yield Problem(graph.name, f"{cut} further nodes", why, [])
