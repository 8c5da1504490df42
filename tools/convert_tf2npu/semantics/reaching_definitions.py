"""Reaching definitions: the bindings of a name that can be the last to run before a use of it."""

from __future__ import annotations

from .model import Binding, Path, Scope, Where


def bindings_of_name(name: str, where: Where) -> list[Binding] | None:
    """Return the bindings of a name that can reach a place; None if nothing binds it."""
    scope: Scope | None = where.scope
    first = True
    while scope is not None:
        bindings = scope.bindings.get(name)
        if bindings is not None and (first or not scope.is_class):
            if not first or len(bindings) == 1 and not scope.is_class:
                return bindings
            reached = reaching_bindings(bindings, where.path)
            if reached or not scope.is_class:  # in a class, a name that is not bound yet is that of the outer scope
                return reached or bindings
        if not scope.is_comprehension:
            first = False
        scope = scope.parent
    return None


def reaching_bindings(bindings: list[Binding], use: Path) -> list[Binding]:
    """Return the bindings that can reach a use in the same scope; none if all of them come after it."""
    reached = [b for b in bindings if not b.where.path]  # arguments
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
            return _joined_bindings(
                reached, [last], [b for b in before if b.where.path[depth][1] > place], after, with_arguments=False
            )
        reached = _joined_bindings(reached, before, after, with_arguments=True)
    return reached


def _joined_bindings(*groups: list[Binding], with_arguments: bool) -> list[Binding]:
    joined: list[Binding] = []
    for group in groups:
        for binding in group:
            if binding not in joined and (with_arguments or binding.where.path):
                joined.append(binding)
    return joined
