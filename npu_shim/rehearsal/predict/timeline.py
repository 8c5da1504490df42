"""When the nodes of a step have their results on the device, which runs one op after another."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.memory import execution_order
from npu_shim.rehearsal.predict.device_ops import Run
from npu_shim.rehearsal.predict.phases import BACKWARD, UPDATE


class Timeline(NamedTuple):
    """Seconds of a step, without its update: after which each node has its results, and the backward pass ends."""

    ends: list[float]
    backward: float


def timeline_of_step(nodes: Sequence[Node], runs: Sequence[Run], seconds: Sequence[float]) -> Timeline:
    """Return the timeline of a step. The update waits for the gradients of all ranks, so it is left out.

    Args:
        nodes: of the step.
        runs: of the ops of the device, in their order.
        seconds: of each of them.
    """
    ends = [0.0] * len(nodes)
    clock = backward = 0.0
    for run, took in zip(runs, seconds):
        if run.phase != UPDATE:
            clock += took
            backward = clock if run.phase == BACKWARD else backward
            for place in run.nodes:
                ends[place] = clock
    own, order = list(ends), execution_order(nodes)
    for place in order * 2:  # again for what leaves a loop, which begins before its body
        ends[place] = own[place] or max((ends[source] for source, _ in nodes[place].inputs), default=0.0)
    return Timeline(ends, backward)
