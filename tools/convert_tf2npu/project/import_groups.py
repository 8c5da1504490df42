"""Groups of files that import each other, directly or not. All files of a group lead to the same files.

Packages are often one group, and a search from each of their files would take as long as the square of their number.
"""

from __future__ import annotations

from typing import Iterable, Sequence


class ImportGroups:
    """The groups of an import graph, in which files are numbers.

    Args:
        paths: of the files, by number.
        imported: the files that each file imports itself.
        importing: the files that import each file themselves.

    Attributes:
        of: the group of each file.
    """

    def __init__(
        self, paths: Sequence[str], imported: Sequence[Sequence[int]], importing: Sequence[Sequence[int]]
    ) -> None:
        self.group_of_file = _groups_of(imported, importing)
        count = max(self.group_of_file, default=-1) + 1
        self._paths: list[list[str]] = [[] for _ in range(count)]
        self._imported: list[set[int]] = [set() for _ in range(count)]
        self._importing: list[set[int]] = [set() for _ in range(count)]
        for number, group in enumerate(self.group_of_file):
            self._paths[group].append(paths[number])
            self._imported[group].update(self.group_of_file[other] for other in imported[number])
            self._importing[group].update(self.group_of_file[other] for other in importing[number])

    def with_imports(self, group: int) -> frozenset[str]:
        """Return the files of a group and all that these import, directly or not."""
        return self._paths_reachable_from([group], self._imported)

    def with_importers(self, groups: Iterable[int]) -> frozenset[str]:
        """Return the files of some groups and all that import them, directly or not."""
        return self._paths_reachable_from(groups, self._importing)

    def _paths_reachable_from(self, groups: Iterable[int], edges: Sequence[set[int]]) -> frozenset[str]:
        closed = set(groups)
        todo = list(closed)
        while todo:
            new = edges[todo.pop()] - closed
            closed |= new
            todo += new
        return frozenset().union(*(self._paths[group] for group in closed))


def _groups_of(forwards: Sequence[Sequence[int]], backwards: Sequence[Sequence[int]]) -> list[int]:
    """Return the group of each file, by the algorithm of Kosaraju."""
    ended: list[int] = []
    seen = bytearray(len(forwards))
    for start in range(len(forwards)):
        todo = [] if seen[start] else [(start, iter(forwards[start]))]
        seen[start] = 1
        while todo:
            number, others = todo[-1]
            other = next((candidate for candidate in others if not seen[candidate]), None)
            if other is None:
                ended.append(number)
                todo.pop()
            else:
                seen[other] = 1
                todo.append((other, iter(forwards[other])))
    groups, count = [-1] * len(forwards), 0
    for start in reversed(ended):
        if groups[start] < 0:
            groups[start], rest = count, [start]
            while rest:
                new = [other for other in backwards[rest.pop()] if groups[other] < 0]
                for other in new:
                    groups[other] = count
                rest += new
            count += 1
    return groups
