"""The check that every rank builds the same collectives, and the message that names a rank that differs."""

from __future__ import annotations

import pytest

from npu_shim.distributed import graph_consistency

SUM, MAX, MORE = "allreduce sum of float32 of a:0", "allreduce max of float32 of a:0", "allgather of int32 of b:0"

DIFFERENCES = {
    "one collective more": (
        [[SUM, MAX], [SUM, MAX], [SUM, MAX, MORE]],
        "in graph 1 rank 6 has 3 collectives, rank 2, 4 2. The first difference is collective 3: "
        f"{MORE} on rank 6, none on rank 2, 4.",
    ),
    "one collective less": (
        [[SUM], [SUM, MAX], [SUM, MAX]],
        "rank 2 has 1 collectives, rank 4, 6 2. The first difference is collective 2: none on rank 2, "
        f"{MAX} on rank 4, 6.",
    ),
    "another operation": (
        [[SUM, MAX], [SUM, MORE], [SUM, MAX]],
        f"rank 4 has 2 collectives, rank 2, 6 2. The first difference is collective 2: {MORE} on rank 4, "
        f"{MAX} on rank 2, 6.",
    ),
    "another order": ([[SUM, MAX], [SUM, MAX], [MAX, SUM]], f"collective 1: {MAX} on rank 6, {SUM} on rank 2, 4."),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_rank_that_differs_from_most_ranks_is_named(case):
    lists, text = DIFFERENCES[case]
    lists = [[" @ ".join(one.rsplit(" of ", 1)) for one in built] for built in lists]
    assert text in graph_consistency.difference_text("graph 1", (2, 4, 6), lists)


def test_key_contains_graph_group_and_position():
    class Graph:
        pass

    first, second = Graph(), Graph()
    keys = [
        graph_consistency.add_collective(graph, group, "allreduce sum of float32", "a:0").key
        for graph in (first, second)
        for group in ("world", "half")
        for _ in range(2)
    ]
    assert [key.split("(collective ")[1][0] for key in keys] == ["1", "2"] * 4
    assert len({key.split(" of graph ")[1] for key in keys}) == 2
    assert keys[0] == keys[2], "each group has its own count: its ranks may not be in other groups"


def test_key_of_eager_collective_is_its_operation():
    assert (
        graph_consistency.add_collective(None, "world", SUM, "").key
        == graph_consistency.add_collective(None, "other", SUM, "").key
        == f"{SUM} (eager)"
    )
