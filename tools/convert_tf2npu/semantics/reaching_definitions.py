"""Which of the bindings of a name can have run last before a use of it."""

from __future__ import annotations

from .model import Binding, Path


def reaching(bindings: list[Binding], use: Path) -> list[Binding]:
    """The bindings that can reach a use in the same scope; none where all of them come after it."""
    found = [b for b in bindings if not b.where.path]  # arguments
    for depth in range(len(use) - 1, -1, -1):
        block, index, loop = use[depth]
        here = [b for b in bindings if len(b.where.path) > depth and b.where.path[depth][0] == block]
        inside = len(use) > depth + 1  # the use stands in a block of the statement at this depth
        before = [
            b
            for b in here
            if b.where.path[depth][1] < index
            or (inside and b.where.path[depth][1] == index and len(b.where.path) == depth + 1)
        ]
        after = [b for b in here if b.where.path[depth][1] >= index] if loop else []
        certain = [b for b in before if len(b.where.path) == depth + 1]
        if certain:
            last = max(certain, key=lambda b: b.where.path[depth][1])
            place = last.where.path[depth][1]
            return _join(found, [last], [b for b in before if b.where.path[depth][1] > place], after, arguments=False)
        found = _join(found, before, after, arguments=True)
    return found


def _join(*groups: list[Binding], arguments: bool) -> list[Binding]:
    joined: list[Binding] = []
    for group in groups:
        for binding in group:
            if binding not in joined and (arguments or binding.where.path):
                joined.append(binding)
    return joined
