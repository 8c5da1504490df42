"""The nodes that one training step runs, of the graph that a script runs: a call may make several steps."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from npu_shim.rehearsal.assess.bounds import flat_with_bounds
from npu_shim.rehearsal.assess.branches import nodes_with_one_branch
from npu_shim.rehearsal.assess.flat import Flat, Node
from npu_shim.rehearsal.assess.known_values import is_inside
from npu_shim.rehearsal.assess.loops import loop_names, loop_trip_counts, steps_in_call
from npu_shim.rehearsal.assess.work import Work

# Operations that a device makes while it moves a byte, and bytes that it could move while it starts an op: to compare
# the branches of a condition.
_FLOPS_OF_BYTE, _BYTES_OF_START = 250, 2_000_000


class StepNodes(NamedTuple):
    """The nodes of one step.

    Attributes:
        flat: the nodes, with one branch of each condition.
        host: the places of those that run on the host.
        trips: how often each loop runs.
        steps: that a call makes; None if it is not known.
        bounded: the places of those with sizes that are bounds, because only values decide them.
        branches: the names of conditions of which the dearer branch counts, because the graph does not decide it.
        loops: the names of loops that count once, because it is not known how often they run.
    """

    flat: Flat
    host: list[int]
    trips: dict[str, int]
    steps: int | None
    bounded: frozenset[int]
    branches: list[str]
    loops: list[str]


def nodes_of_step(flat: Flat, host: Sequence[int], trips: dict[str, int], done: Work) -> StepNodes:
    """Return the nodes of one step.

    Args:
        flat: the nodes that the script runs.
        host: the places of those that run on the host.
        trips: how often each loop runs.
        done: the work of each node.
    """
    costs = [
        max(flops / _FLOPS_OF_BYTE, size) + _BYTES_OF_START * bool(size) for flops, size in zip(done.flops, done.bytes)
    ]
    kept = nodes_with_one_branch(flat.nodes, costs)
    bounded = flat_with_bounds(kept.nodes, flat)
    at = {place: number for number, place in enumerate(kept.places)}
    trips = {**trips, **loop_trip_counts(bounded.flat.nodes)}
    loop, steps = steps_in_call(kept.nodes, trips)
    endless = [
        name
        for name in loop_names(kept.nodes)
        if name not in trips and name != loop and any(_computes_in(node, name) for node in kept.nodes)
    ]
    return StepNodes(
        bounded.flat,
        [at[place] for place in host if place in at],
        {name: runs for name, runs in trips.items() if name != loop},
        steps,
        bounded.places,
        kept.unknown,
        endless,
    )


def _computes_in(node: Node, loop: str) -> bool:
    return is_inside(node.inside, loop) and any("float" in dtype for dtype in node.dtypes)
