"""Find the gradients that optimizers apply, and the code that computes them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..semantics.model import Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.signatures import bind
from .gradient_sources import AVERAGED, BY_HAND, GradientSource, Trace
from .optimizers import AROUND, role

GRADIENTS = (
    "ys",
    "xs",
    "grad_ys",
    "name",
    "colocate_gradients_with_ops",
    "gate_gradients",
    "aggregation_method",
    "stop_gradients",
    "unconnected_gradients",
)


class Applied(NamedTuple):
    """A call of ``apply_gradients``, and the code that computes the gradients."""

    call: ast.Call
    where: Where
    sources: list[GradientSource]


def applied(names: Names) -> list[Applied]:
    """Return the calls of apply_gradients in a module."""
    found = []
    for call in names.calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "apply_gradients":
            pairs = bind(call.node, ("grads_and_vars", "global_step", "name")).args.get("grads_and_vars")
            sources = Trace().of(pairs, call.where, names) if pairs is not None else []
            found.append(Applied(call.node, call.where, sources))
    return found


def applied_in(project: ModuleIndex) -> dict[str, list[Applied]]:
    """Return the calls of apply_gradients in the files of a project."""
    found: dict[str, list[Applied]] = {}
    for path in project.paths:
        if path.endswith((".py", ".pyw")) and b"apply_gradients" in project.raw(path):
            module = project.module(path)
            if module is not None:
                found[path] = applied(module.names)
    return found


def only_applies(names: Names, made: ast.Call) -> bool:
    """Return True if an optimizer only applies gradients that the script computes itself.

    Args:
        names: of its module.
        made: the call that makes it.
    """
    statement = names.parents.get(made)
    if isinstance(statement, ast.Attribute) and statement.attr == "apply_gradients":
        whole = names.parents.get(statement)
        sources = [s for each in applied(names) if each.call is whole for s in each.sources]
        return bool(sources) and all(source.kind in (BY_HAND, AVERAGED) for source in sources)
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return False
    word, scope = statement.targets[0].id, names.places[statement].scope
    sources = []
    for node in names.mentions(word):
        if not isinstance(node, ast.Name) or names.place(node).scope is not scope:
            return False
        parent = names.parents.get(node)
        call = names.parents.get(parent) if parent is not None else None
        if isinstance(parent, ast.Attribute) and parent.attr == "apply_gradients" and isinstance(call, ast.Call):
            sources += next(a.sources for a in applied(names) if a.call is call)
        elif not (isinstance(parent, ast.Call) and role(parent, names.place(parent), names) == AROUND):
            return False
    return bool(sources) and all(source.kind in (BY_HAND, AVERAGED) for source in sources)
