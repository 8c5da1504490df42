"""Find out which runs of a session train, without an op for it in their graph."""

from __future__ import annotations

from typing import Iterable

from npu_shim._tensorflow import tf_graph, tf_recording
from npu_shim._tensorflow.types import Graph, Operation, Result

_UPDATES, _KNOWN = "npu_shim_update_ops", "npu_shim_fetches"  # attributes of a graph, so that they end with it


def remember_update(graph: Graph, result: Result) -> None:
    """Take note of an update that was added to a graph.

    Args:
        graph: that of a session; others are ignored.
        result: what the method of the optimizer returns.
    """
    if not getattr(graph, "building_function", False):
        setattr(graph, _UPDATES, [*getattr(graph, _UPDATES, ()), set(tf_recording.ops_of_update(result))])


def update_numbers_of_run(graph: Graph, fetches: Iterable[object]) -> tuple[int, ...]:
    """Return the numbers of the updates that a run makes, found once for each set of fetches."""
    updates: list[set[Operation]] = getattr(graph, _UPDATES, [])
    if not updates:
        return ()
    ops = {op for op in (tf_recording.fetched_op(graph, fetch) for fetch in fetches) if op is not None}
    key = len(updates), frozenset(ops)
    known: dict[object, tuple[int, ...]] = getattr(graph, _KNOWN, None) or {}
    if key not in known:
        above = tf_graph.ops_with_ancestors(ops).keys()
        known[key] = tuple(number for number, update_ops in enumerate(updates) if update_ops & above)
        setattr(graph, _KNOWN, known)
    return known[key]
