"""Find the gradients that optimizers apply, and the code that computes them."""

from __future__ import annotations

import ast
import collections
from typing import Iterator, NamedTuple

from ..semantics.model import Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.signatures import bind
from ..semantics.value_flow import origins
from ..syntax.expressions import last_name
from .gradient_sources import AVERAGED, BY_HAND, BY_OPTIMIZER, GradientSource, Trace
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


PAIRS = ("grads_and_vars", "global_step", "name")  # parameters of apply_gradients
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
_ITERABLES = (ast.Name, ast.Attribute, ast.Call, ast.List, ast.ListComp, ast.Subscript)  # behind `in` of another one


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
            pairs = bind(call.node, PAIRS).args.get("grads_and_vars")
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
    """Return True if an optimizer only applies gradients that the script computes or averages itself.

    Args:
        names: of its module.
        made: the call that makes it.
    """
    statement = names.parents.get(made)
    if isinstance(statement, ast.Attribute) and statement.attr == "apply_gradients":
        whole = names.parents.get(statement)
        return any(each.call is whole and _is_by_script(each) for each in applied(names))
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return False
    word, found, computes = statement.targets[0].id, [], False
    for node in names.mentions(word):
        bindings = names.lookup(word, names.place(node)) if isinstance(node, ast.Name) else None
        if not bindings or any(each.node is not made for each in bindings):
            return False
        parent = names.parents.get(node)
        call = names.parents.get(parent) if parent is not None else None
        method = parent.attr if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) else ""
        if method == "apply_gradients":
            found += [each for each in applied(names) if each.call is call]
        elif method == "compute_gradients":
            computes = True
        elif not (isinstance(parent, ast.Call) and role(parent, names.place(parent), names) == AROUND):
            return False
    gathered = names.once(_gathered)
    return bool(found) and all(
        names.key(each.call) in gathered
        or _is_by_script(each)
        and not (computes and any(source.kind != AVERAGED for source in each.sources))
        for each in found
    )


def _is_by_script(each: Applied) -> bool:
    return bool(each.sources) and all(source.kind in (BY_HAND, AVERAGED) for source in each.sources)


def averaged_where_applied(names: Names) -> list[Applied]:
    """Return the calls of apply_gradients for what the iterations of a loop compute, as towers do.

    Their gradients are averaged over the ranks once, where they are applied. So the optimizers that compute them are
    not wrapped.
    """
    gathered = names.once(_gathered)
    return [
        each
        for each in applied(names)
        if names.key(each.call) in gathered
        and all(
            source.kind != BY_OPTIMIZER or _all_only_apply(names, source.node, source.where)  # type: ignore[arg-type]
            for source in each.sources
        )
    ]


def averages(names: Names, call: ast.Call) -> bool:
    """Return True if a call that computes gradients averages them itself, or will do so."""
    if last_name(call.func) == "compute_gradients":
        return not _all_only_apply(names, call, names.place(call))
    return names.key(call) in names.once(_averaged_by_hand)


def _averaged_by_hand(names: Names) -> frozenset[tuple[str, int]]:
    """Return the keys of the calls of tf.gradients, and of averages, whose gradients are applied."""
    once = [each.call for each in averaged_where_applied(names)]
    sources = [source for each in applied(names) if each.call not in once for source in each.sources]
    return frozenset(source.names.key(source.node) for source in sources if source.kind in (BY_HAND, AVERAGED))


def _all_only_apply(names: Names, computing: ast.Call, where: Where) -> bool:
    """Return True if the optimizers of a call of compute_gradients are known, and none is wrapped."""
    made = [each.node for each in origins(computing.func.value, where, names)]  # type: ignore[attr-defined]
    return all(isinstance(each, ast.Call) and only_applies(names, each) for each in made)


def _gathered(names: Names) -> frozenset[tuple[str, int]]:
    """Return the keys of the calls of apply_gradients whose gradients all come from loops that they are not in."""
    every = applied(names)
    uses = collections.Counter(id(source.node) for each in every for source in each.sources)
    clips = [call.node for call in names.calls if "clip" in last_name(call.node.func)]
    found: set[tuple[str, int]] = set()
    for each in every:
        loops = [_loop_of(source, each.call, names) for source in each.sources if uses[id(source.node)] == 1]
        pairs = bind(each.call, PAIRS).args.get("grads_and_vars")
        is_of_loops = len(loops) == len(each.sources) and all(loops)
        # Clipping behind the loops would come before the average.
        if is_of_loops and isinstance(pairs, _ITERABLES) and all(set(loops) & {*names.ancestors(c)} for c in clips):
            found.add(names.key(each.call))
    return frozenset(found)


def _loop_of(source: GradientSource, apply: ast.Call, names: Names) -> ast.AST | None:
    """Return the loop around code that computes gradients, or around a use of its function, and not around apply."""
    if source.kind not in (BY_HAND, BY_OPTIMIZER) or source.names is not names:
        return None
    around_apply = set(names.ancestors(apply))
    loops = [*_loops_around(source.node, names)]
    if loops:
        return None if loops[0] in around_apply else loops[0]
    function = next((each for each in names.ancestors(source.node) if isinstance(each, ast.FunctionDef)), None)
    uses = names.mentions(function.name) if function is not None else ()
    return next((loop for use in uses for loop in _loops_around(use, names) if loop not in around_apply), None)


def _loops_around(node: ast.AST, names: Names) -> Iterator[ast.AST]:
    """Yield the loops of a function that run an expression in each iteration, the innermost first."""
    inner = node
    for around in names.ancestors(node):
        if isinstance(around, ast.FunctionDef):
            return
        is_iterated = inner is getattr(around, "iter", None) or isinstance(inner, ast.comprehension)
        if isinstance(around, _LOOPS) and not is_iterated:
            yield around
        inner = around
