"""Find the gradients that optimizers apply, and the code that computes them."""

from __future__ import annotations

import ast
import collections
from typing import Iterator, Mapping, NamedTuple

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.signatures import bind_arguments
from ..semantics.value_flow import origins
from ..syntax.expressions import last_name
from ..tf_api.name_tables import PARAMETERS
from .gradient_sources import AVERAGED, BY_HAND, BY_OPTIMIZER, GradientSource, GradientTrace
from .optimizers import CREATES_OPTIMIZER, WRAPS_OPTIMIZER, optimizer_role

GRADIENTS = PARAMETERS["tensorflow.gradients"]
_BY_HAND = "tensorflow.gradients"
PAIRS = ("grads_and_vars", "global_step", "name")  # parameters of apply_gradients
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
_ITERABLES = (ast.Name, ast.Attribute, ast.Call, ast.List, ast.ListComp, ast.Subscript)  # behind `in` of another one


class Applied(NamedTuple):
    """A call of ``apply_gradients``, and the code that computes the gradients."""

    call: ast.Call
    where: Where
    sources: list[GradientSource]


def apply_gradients_calls(names: Names) -> list[Applied]:
    """Return the calls of apply_gradients in a module."""
    calls = []
    for call in names.calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "apply_gradients":
            pairs = bind_arguments(call.node, PAIRS).args.get("grads_and_vars")
            sources = GradientTrace().sources_of(pairs, call.where, names) if pairs is not None else []
            calls.append(Applied(call.node, call.where, sources))
    return calls


def apply_gradients_calls_by_file(project: ModuleIndex) -> dict[str, list[Applied]]:
    """Return the calls of apply_gradients in the files of a project."""
    by_file: dict[str, list[Applied]] = {}
    for path in project.paths:
        if path.endswith((".py", ".pyw")) and b"apply_gradients" in project.raw(path):
            module = project.module(path)
            if module is not None:
                by_file[path] = apply_gradients_calls(module.names)
    return by_file


def apply_gradients_calls_by_node(context: Context) -> Mapping[ast.AST | None, Applied]:
    """Return the calls of apply_gradients in a file by their nodes."""
    return context.once(_applications_by_node)


def _applications_by_node(context: Context) -> dict[ast.AST | None, Applied]:
    return {application.call: application for application in apply_gradients_calls(context.names)}


def only_applies_script_gradients(context: Context, optimizer: ast.Call) -> bool:
    """Return True if an optimizer only applies gradients that the script computes or averages itself.

    Args:
        context: of its file.
        optimizer: the call that makes it.
    """
    names, here = context.names, apply_gradients_calls_by_node(context)
    statement = names.parents.get(optimizer)
    if isinstance(statement, ast.Attribute) and statement.attr == "apply_gradients":
        whole = names.parents.get(statement)
        return whole in here and _is_by_script(here[whole])
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return False
    return context.once(_optimizers_only_apply, statement.targets[0].id)


def _optimizers_only_apply(context: Context, word: str) -> bool:
    """Return True if all that a file does with the optimizers of one name is to apply gradients of the script."""
    names, here = context.names, apply_gradients_calls_by_node(context)
    own_applications, computes = [], False
    for node in names.mentions(word):
        bindings = names.bindings_of_name(word, names.place(node)) if isinstance(node, ast.Name) else None
        if not bindings or not all(_creates_or_wraps_optimizer(names, binding.node) for binding in bindings):
            return False
        parent = names.parents.get(node)
        call = names.parents.get(parent) if parent is not None else None
        method = parent.attr if isinstance(parent, ast.Attribute) and isinstance(call, ast.Call) else ""
        if method == "apply_gradients":
            own_applications += [here[call]] if call in here else []
        elif method == "compute_gradients":
            computes = True
        elif not (
            isinstance(parent, ast.Call) and optimizer_role(parent, names.place(parent), names) == WRAPS_OPTIMIZER
        ):
            return False
    if not computes and _BY_HAND in context.called_names.values():  # around such an optimizer a wrapper has no effect
        return bool(own_applications)
    gathered = context.once(_applications_of_gathered_gradients)
    return bool(own_applications) and all(
        application.call in gathered
        or _is_by_script(application)
        and not (computes and any(source.kind != AVERAGED for source in application.sources))
        for application in own_applications
    )


def _creates_or_wraps_optimizer(names: Names, node: ast.AST | None) -> bool:
    """Return True for a call that makes an optimizer, or puts one around another."""
    return isinstance(node, ast.Call) and optimizer_role(node, names.place(node), names) in (
        CREATES_OPTIMIZER,
        WRAPS_OPTIMIZER,
    )


def _is_by_script(application: Applied) -> bool:
    return bool(application.sources) and all(source.kind in (BY_HAND, AVERAGED) for source in application.sources)


def applications_of_loop_gradients(context: Context) -> list[Applied]:
    """Return the calls of apply_gradients for what the iterations of a loop compute, as towers do.

    Their gradients are averaged over the ranks once, where they are applied. So the optimizers that compute them are
    not wrapped.
    """
    gathered = context.once(_applications_of_gathered_gradients)
    return [
        application
        for application in apply_gradients_calls_by_node(context).values()
        if application.call in gathered
        and all(
            source.kind != BY_OPTIMIZER or _known_optimizers_only_apply(context, source.node, source.where)  # type: ignore[arg-type]
            for source in application.sources
        )
    ]


def averages_gradients(context: Context, call: ast.Call) -> bool:
    """Return True if a call that computes gradients averages them itself, or will do so."""
    if last_name(call.func) == "compute_gradients":
        return not _known_optimizers_only_apply(context, call, context.names.place(call))
    return call in context.once(_calls_of_applied_gradients)


def _calls_of_applied_gradients(context: Context) -> frozenset[ast.AST]:
    """Return the calls of tf.gradients, and of averages, whose gradients are applied."""
    once = {application.call for application in applications_of_loop_gradients(context)}
    sources = (
        source
        for application in apply_gradients_calls_by_node(context).values()
        if application.call not in once
        for source in application.sources
    )
    return frozenset(source.node for source in sources if source.kind in (BY_HAND, AVERAGED))


def _known_optimizers_only_apply(context: Context, computing: ast.Call, where: Where) -> bool:
    """Return True if the optimizers of a call of compute_gradients are known, and none is wrapped."""
    optimizers = [origin.node for origin in origins(computing.func.value, where, context.names)]  # type: ignore[attr-defined]
    return all(
        isinstance(optimizer, ast.Call) and only_applies_script_gradients(context, optimizer)
        for optimizer in optimizers
    )


def _applications_of_gathered_gradients(context: Context) -> frozenset[ast.AST]:
    """Return the calls of apply_gradients whose gradients all come from loops that they are not in."""
    names, every = context.names, apply_gradients_calls_by_node(context).values()
    uses = collections.Counter(id(source.node) for application in every for source in application.sources)
    clips: dict[ast.AST, set[ast.AST]] = {}  # by each node around them
    for call in names.calls:
        if "clip" in last_name(call.node.func):
            for around in names.ancestors(call.node):
                clips.setdefault(around, set()).add(call.node)
    clipped = len(clips.get(names.tree, ()))
    gathered: set[ast.AST] = set()
    for application in every:
        loops = [
            _loop_around_gradients(source, application.call, names)
            for source in application.sources
            if uses[id(source.node)] == 1
        ]
        pairs = bind_arguments(application.call, PAIRS).args.get("grads_and_vars")
        is_of_loops = len(loops) == len(application.sources) and all(loops)
        # Clipping behind the loops would come before the average.
        inside = set().union(*(clips.get(loop, ()) for loop in loops if loop is not None))
        if is_of_loops and isinstance(pairs, _ITERABLES) and len(inside) == clipped:
            gathered.add(application.call)
    return frozenset(gathered)


def _loop_around_gradients(source: GradientSource, apply: ast.Call, names: Names) -> ast.AST | None:
    """Return the loop around code that computes gradients, or around a use of its function, and not around apply."""
    if source.kind not in (BY_HAND, BY_OPTIMIZER) or source.names is not names:
        return None
    around_apply = set(names.ancestors(apply))
    loops = [*_loops_around(source.node, names)]
    if loops:
        return None if loops[0] in around_apply else loops[0]
    function = next((around for around in names.ancestors(source.node) if isinstance(around, ast.FunctionDef)), None)
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
