"""Groups of nodes that links connect."""

from __future__ import annotations

from typing import Iterable


def representatives(members: Iterable[int], links: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return by member the one that stands for its group. Links connect members to groups."""
    parents = {member: member for member in members}

    def root(member: int) -> int:
        while parents[member] != member:
            parents[member] = parents[parents[member]]
            member = parents[member]
        return member

    for source, target in links:
        parents[root(source)] = root(target)
    return {member: root(member) for member in parents}
