"""Groups of files that import each other: what a file reaches is what a search from it finds."""

from __future__ import annotations

import random
from typing import Iterable, Sequence

import pytest
from convert_tf2npu.project.import_groups import ImportGroups


def searched(start: Iterable[int], edges: Sequence[Sequence[int]]) -> set[int]:
    found = set(start)
    todo = list(found)
    while todo:
        new = set(edges[todo.pop()]) - found
        found |= new
        todo += new
    return found


@pytest.mark.parametrize("edges_of_a_file", [0.3, 1, 2])
@pytest.mark.parametrize("files", [0, 1, 2, 30])
def test_files_reach_what_a_search_finds(files: int, edges_of_a_file: float) -> None:
    draw = random.Random(files)
    for _ in range(20):
        imported: list[list[int]] = [[] for _ in range(files)]
        importing: list[list[int]] = [[] for _ in range(files)]
        for _ in range(int(files * edges_of_a_file)):
            one, other = draw.randrange(files), draw.randrange(files)
            imported[one].append(other)
            importing[other].append(one)
        groups = ImportGroups([str(number) for number in range(files)], imported, importing)
        for number in range(files):
            reached = searched([number], imported)
            assert groups.with_imports(groups.group_of_file[number]) == set(map(str, reached))
            for other in reached:
                assert (groups.group_of_file[other] == groups.group_of_file[number]) == (
                    number in searched([other], imported)
                )
        some = [number for number in range(files) if draw.random() < 0.1]
        assert groups.with_importers(groups.group_of_file[number] for number in some) == set(
            map(str, searched(some, importing))
        )


def test_a_long_chain_needs_no_recursion() -> None:
    count = 20_000
    imported = [[number + 1] for number in range(count - 1)] + [[0]]
    importing = [[count - 1]] + [[number] for number in range(count - 1)]
    groups = ImportGroups([str(number) for number in range(count)], imported, importing)
    assert set(groups.group_of_file) == {0} and len(groups.with_imports(0)) == count
