"""The order of a graph's collectives, and how a rank that differs is named."""

from __future__ import annotations

import pytest

from npu_shim.distributed import graph_consistency as graph_order

SUM, MAX, MORE = "allreduce sum of float32 of a:0", "allreduce max of float32 of a:0", "allgather of int32 of b:0"

DIFFERENT = {
    "one more": (
        [[SUM, MAX], [SUM, MAX], [SUM, MAX, MORE]],
        "in graph 1 rank 6 has 3 collectives, rank 2, 4 2. The first difference is collective 3: "
        f"{MORE} on rank 6, none on rank 2, 4.",
    ),
    "one less": (
        [[SUM], [SUM, MAX], [SUM, MAX]],
        "rank 2 has 1 collectives, rank 4, 6 2. The first difference is collective 2: none on rank 2, "
        f"{MAX} on rank 4, 6.",
    ),
    "another": (
        [[SUM, MAX], [SUM, MORE], [SUM, MAX]],
        f"rank 4 has 2 collectives, rank 2, 6 2. The first difference is collective 2: {MORE} on rank 4, "
        f"{MAX} on rank 2, 6.",
    ),
    "order": ([[SUM, MAX], [SUM, MAX], [MAX, SUM]], f"collective 1: {MAX} on rank 6, {SUM} on rank 2, 4."),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_the_rank_that_differs_from_most_is_named(what):
    lists, text = DIFFERENT[what]
    lists = [[" @ ".join(one.rsplit(" of ", 1)) for one in built] for built in lists]
    assert text in graph_order.told("graph 1", (2, 4, 6), lists)


def test_keys_tell_graphs_groups_and_places_apart():
    class Graph:
        pass

    first, second = Graph(), Graph()
    keys = [
        graph_order.add(graph, group, "allreduce sum of float32", "a:0").key
        for graph in (first, second)
        for group in ("world", "half")
        for _ in range(2)
    ]
    assert [key.split("(collective ")[1][0] for key in keys] == ["1", "2"] * 4
    assert len({key.split(" of graph ")[1] for key in keys}) == 2
    assert [graph_order.count(graph) for graph in (first, second, Graph())] == [4, 4, 0]
    assert keys[0] == keys[2], "a group counts for itself: its ranks may not know of other groups"


def test_what_is_done_at_once_has_the_key_of_its_kind():
    assert (
        graph_order.add(None, "world", SUM, "").key == graph_order.add(None, "other", SUM, "").key == f"{SUM} (eager)"
    )
