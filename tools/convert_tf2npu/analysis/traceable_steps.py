"""Decide if a training step computes the same in a graph as in eager code, as far as its source shows it.

Tracing runs Python code once. So a step must have no effect but on variables, and must read no Python value that
changes between its calls. What the source does not show is left to observed runs: the objects that the step calls.
"""

from __future__ import annotations

import ast
import re
from typing import Iterable, NamedTuple, Sequence

from ..project.context import Context
from ..semantics.mentions import mentions_of_function
from ..semantics.module_index import Names
from ..semantics.tf_types import METHODS_RUN_ONCE
from ..syntax.expressions import last_name
from .surrounding_files import names_of_surrounding_files

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.With, ast.Return, ast.For, ast.Pass, ast.Assert)
_REFUSED = (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.Starred, ast.FormattedValue)
_BUILTINS = frozenset("dict enumerate len list range reversed tuple zip None True False".split())
_BINDINGS = frozenset({"import", "value", "part", "with", "def", "class", "arg"})
_SCOPES = frozenset({"tensorflow.GradientTape", "tensorflow.name_scope"})
# Of Keras: losses, metrics that are functions, and operations.
_PURE = re.compile(r"tensorflow\.keras\.(?:losses\.|ops\.|metrics\.[a-z_]+$)")
# Functions of TensorFlow that have effects in Python, create variables, or read what changes.
_EFFECTS = re.compile(
    r"tensorflow\.(?:(?:compat|config|data|debugging|estimator|experimental|io|keras|profiler|saved_model|summary|train)\."
    r"|(?:Module|Variable|device|function|init_scope|print|numpy_function|py_function|random\.set_seed)\b)"
)
RATES = frozenset({"lr", "learning_rate"})  # attributes of Keras' optimizers that are variables
_HIDDEN = frozenset({"setattr", "__setattr__", "__dict__"})
_SCHEDULES = ("Decay", "Schedule", "schedules")
_READS = frozenset({"numpy", "item", "tolist"})
_OF_LAYERS = frozenset("trainable_variables trainable_weights variables weights".split())
_OF_TAPES = frozenset({"gradient", "watch"})
_OF_DICTIONARIES = frozenset({"items", "keys", "values"})
# Methods that change what they belong to.
_CHANGES = frozenset(
    "append appendleft clear extend fill insert pop popitem popleft remove reverse setdefault sort update".split()
)


class TraceableStep(NamedTuple):
    """A step that may run in a tf.function.

    Attributes:
        calls: the functions of its calls, as expressions; all calls are in its file.
        callees: what the step calls and its source does not show.
    """

    calls: list[ast.expr]
    callees: list[ast.expr]


def traceable_step(context: Context, function: ast.FunctionDef) -> TraceableStep | None:
    """Return a function that computes and applies gradients once, if it can be traced; None if it cannot.

    Args:
        context: the file.
        function: of the file.
    """
    uses = mentions_of_function(function, context.names, of_objects=True)
    if not uses or function.decorator_list:
        return None
    calls = []
    for use in uses:
        call = use.names.parents.get(use.node)
        if use.names is not context.names or not isinstance(call, ast.Call) or call.func is not use.node:
            return None
        calls.append(call.func)
    callees: list[ast.expr] = []
    return (
        TraceableStep(calls, callees)
        if _is_function_without_effects(context, context.names, function, callees, set())
        else None
    )


def _is_function_without_effects(
    context: Context, names: Names, function: ast.FunctionDef, callees: list[ast.expr], seen: set[ast.AST]
) -> bool:
    """Return True if a function has no effects that its source shows, and add what it calls besides to callees.

    Args:
        context: the file of the step.
        names: of the file of the function.
        function: the step, or a function that it calls.
        callees: receives the functions of calls that only a run can judge.
        seen: the functions that are being judged.
    """
    if function in seen:
        return True
    seen.add(function)
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        return False
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    own = stored_names(nodes) | {argument.arg for argument in arguments.args}
    return are_without_effects(context, names, nodes, own, callees, seen)


def stored_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that some code binds."""
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def are_without_effects(
    context: Context, names: Names, nodes: Sequence[ast.AST], own: set[str], callees: list[ast.expr], seen: set[ast.AST]
) -> bool:
    """Return True if some code has no effects that the source shows, and add what it calls besides to callees.

    Args:
        context: the file of the step.
        names: of the file of the code.
        nodes: all nodes of the code.
        own: the names that it binds.
        callees: receives the functions of calls that only a run can judge.
        seen: the functions that are being judged.
    """
    if context.once(_changes_in_hidden_ways):
        return False
    return all(_is_node_without_effect(context, names, node, own) for node in nodes) and all(
        _is_call_without_effect(context, names, node, callees, seen) for node in nodes if isinstance(node, ast.Call)
    )


def _is_node_without_effect(context: Context, names: Names, node: ast.AST, own: set[str]) -> bool:
    if isinstance(node, ast.With):
        return all(
            isinstance(part.context_expr, ast.Call)
            and names.resolve(part.context_expr.func, names.place(node)) in _SCOPES
            for part in node.items
        )
    if isinstance(node, (ast.For, ast.comprehension)) and _is_read_from_object(node.iter):
        return False
    if isinstance(node, ast.stmt):
        return isinstance(node, _STATEMENTS)
    if isinstance(node, _REFUSED) or type(node).__name__ == "NamedExpr":
        return False
    if isinstance(node, ast.Name):
        is_other_file = names is not context.names  # whose names another file may assign as attributes
        changed = context.once(assigned_attributes if is_other_file else _words_changed_in_place)
        return node.id in own or never_changes(names, node) and node.id not in changed
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and not _may_be_assigned_in_training(context, names, node)
    if isinstance(node, ast.Subscript):
        root = node.value
        is_own = isinstance(root, ast.Name) and root.id in own - {"self"}
        return isinstance(node.ctx, ast.Load) and (is_own or _is_constant_container(context, names, root))
    return True


def _is_constant_container(context: Context, names: Names, node: ast.expr) -> bool:
    """Return True for the name of a dictionary, a list or a tuple of the file that never changes."""
    binding = names.only_binding(node, names.place(node), "value")
    return (
        binding is not None
        and isinstance(node, ast.Name)
        and isinstance(binding.node, (ast.Dict, ast.List, ast.Tuple))
        and never_changes(names, node)
        and node.id not in context.once(_words_changed_in_place)
    )


def _is_read_from_object(node: ast.expr) -> bool:
    """Return True for an attribute that may be a list of Python, which other code may hold and change."""
    return isinstance(node, ast.Attribute) and node.attr not in _OF_LAYERS


def never_changes(names: Names, node: ast.Name) -> bool:
    """Return True if a name outside a function is bound once, and not in a loop."""
    bindings = names.bindings_of_name(node.id, names.place(node))
    if bindings is None:
        return node.id in _BUILTINS
    if len(bindings) != 1 or bindings[0].kind not in _BINDINGS or node.id in names.once(_names_declared_global):
        return False
    return bindings[0].kind in ("import", "arg") or not is_in_loop(names, bindings[0].node)


def _names_declared_global(names: Names) -> frozenset[str]:
    """Return the names that functions of a file declare as global or nonlocal."""
    return frozenset(
        name for node in ast.walk(names.tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    )


def is_in_loop(names: Names, node: ast.AST | None) -> bool:
    """Return True if a node is in a loop of its function."""
    for parent in names.ancestors(node) if node is not None else ():
        if isinstance(parent, (ast.FunctionDef, ast.Lambda)):
            return False
        if isinstance(parent, (ast.For, ast.While)):
            return True
    return False


def _may_be_assigned_in_training(context: Context, names: Names, node: ast.Attribute) -> bool:
    """Return True if code may assign to an attribute while the program trains; also for what ``trainable`` decides."""
    if (names.resolve(node, names.place(node)) or "").startswith("tensorflow."):
        return False
    attributes = [node.attr, "trainable"] if node.attr.startswith("trainable") else [node.attr]
    return any(attribute in context.once(assigned_attributes) for attribute in attributes)


def assigned_attributes(context: Context) -> frozenset[str]:
    """Return the attributes that may change while a program trains, as far as the files around a file show it.

    They are assigned or changed in place outside of the making of objects, are properties, or names of modules that
    functions bind.
    """
    assigned = set(context.once(_words_changed_in_place))
    for theirs in context.once(names_of_surrounding_files):
        assigned |= theirs.once(_names_declared_global)
        for attribute, held in theirs.attributes.items():
            if not all(_is_in_making(theirs, assignment.target) for assignment in held):
                assigned.add(attribute)
        for node in ast.walk(theirs.tree):
            if isinstance(node, ast.FunctionDef) and any(last_name(d) == "property" for d in node.decorator_list):
                assigned.add(node.name)
    return frozenset(assigned)


def _changes_in_hidden_ways(context: Context) -> bool:
    """Return True if the files around a file may assign attributes by other ways than assignments.

    So does an optimizer with a schedule of Keras 2 that gets another learning rate: it is a number, and no variable.
    """
    rates = not RATES.isdisjoint(
        attribute
        for theirs in context.once(names_of_surrounding_files)
        for attribute, held in theirs.attributes.items()
        if not all(_is_in_making(theirs, assignment.target) for assignment in held)
    )
    for theirs in context.once(names_of_surrounding_files):
        for node in ast.walk(theirs.tree):
            word = last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            if word in _HIDDEN or rates and word.endswith(_SCHEDULES):
                return True
    return "vars" in context.once(_words_changed_in_place)


def _words_changed_in_place(context: Context) -> frozenset[str]:
    """Return the last words of what the files around a file change in place, such as lists that grow."""
    words: set[str] = set()
    for theirs in context.once(names_of_surrounding_files):
        for node in ast.walk(theirs.tree):
            is_stored = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
            is_changed = isinstance(node, ast.Attribute) and node.attr in _CHANGES
            if (is_stored or is_changed) and not _is_in_making(theirs, node):
                words.add(last_name(node.value))  # type: ignore[attr-defined]
    return frozenset(words)


def _is_in_making(names: Names, node: ast.AST) -> bool:
    """Return True if an expression is in a function that makes an object."""
    around = [parent for parent in names.ancestors(node) if isinstance(parent, ast.FunctionDef)]
    return bool(around) and around[0].name in METHODS_RUN_ONCE


def _is_call_without_effect(
    context: Context, names: Names, call: ast.Call, callees: list[ast.expr], seen: set[ast.AST]
) -> bool:
    function, where = call.func, names.place(call)
    if any(keyword.arg is None for keyword in call.keywords) or last_name(function) in _READS:
        return False
    name = names.resolve(function, where) or ""
    if name.startswith("tensorflow."):
        return bool(_PURE.match(name)) or not _EFFECTS.match(name)
    if (
        isinstance(function, ast.Name)
        and function.id in _BUILTINS
        and names.bindings_of_name(function.id, where) is None
    ):
        return not any(map(_is_read_from_object, call.args))
    if isinstance(function, ast.Attribute) and function.attr in _OF_TAPES and _is_tape(names, function.value):
        return True
    if isinstance(function, ast.Attribute) and function.attr in _OF_DICTIONARIES:
        return _is_constant_container(context, names, function.value)
    binding = names.only_binding(function, where, "value")
    if binding is not None and isinstance(binding.node, ast.Lambda) and binding.node not in seen:
        seen.add(binding.node)
        nodes = list(ast.walk(binding.node.body))
        own = stored_names(nodes) | {argument.arg for argument in binding.node.args.args}
        return are_without_effects(context, names, nodes, own, callees, seen)
    definition = names.definition(function, where)
    if definition is not None and isinstance(definition.node, ast.FunctionDef):
        inside: list[ast.expr] = []
        plain = not definition.node.decorator_list and _is_function_without_effects(
            context, definition.names, definition.node, inside, seen
        )
        callees.extend(inside if definition.names is names else ())
        return plain and (definition.names is context.names or not inside)
    if names is context.names and isinstance(function, (ast.Name, ast.Attribute)):
        callees.append(function)
        return True
    return False


def _is_tape(names: Names, node: ast.expr) -> bool:
    bindings = names.bindings_of_name(node.id, names.place(node)) or [] if isinstance(node, ast.Name) else []
    return bool(bindings) and all(
        binding.kind == "with"
        and isinstance(binding.node, ast.Call)
        and names.resolve(binding.node.func, binding.where) == "tensorflow.GradientTape"
        for binding in bindings
    )
