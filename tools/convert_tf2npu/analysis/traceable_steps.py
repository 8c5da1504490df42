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
from ..syntax.expressions import last_name, last_part
from .changing_values import (
    BUILTINS,
    OF_LAYERS,
    adds_layers,
    assigned_attributes,
    changes_in_hidden_ways,
    is_in_loop,
    names_assigned_of_modules,
    never_changes,
    words_changed_in_place,
)
from .surrounding_files import names_of_surrounding_files
from .tf_functions import overridden_methods

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.With, ast.Return, ast.For, ast.Pass, ast.Assert)
_REFUSED = (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.Starred, ast.FormattedValue)
_SCOPES = frozenset({"tensorflow.GradientTape", "tensorflow.name_scope"})
# Of Keras: losses, metrics that are functions, and operations.
_PURE = re.compile(r"tensorflow\.keras\.(?:losses\.|ops\.|metrics\.[a-z_]+$)")
# Functions of TensorFlow that have effects in Python, create variables, or read what changes.
_EFFECTS = re.compile(
    r"tensorflow\.(?:(?:compat|config|data|debugging|estimator|experimental|io|keras|profiler|saved_model|summary|train)\."
    r"|(?:Module|Variable|device|function|init_scope|lookup|print|numpy_function|py_function|queue)\b"
    r"|random\.(?:Generator|create_rng_state|get_global_generator|set_seed)\b)"
)
# Functions of TensorFlow that run functions of the script.
_CALLING = frozenset(
    "case cond custom_gradient foldl foldr map_fn map_structure map_structure_up_to recompute_grad scan switch_case "
    "vectorized_map while_loop".split()
)
_SAVING = frozenset({"export", "save", "save_model"})
_ENDS = frozenset({"KeyboardInterrupt", "OutOfRangeError", "StopIteration"})  # errors of no step
_READS = frozenset({"numpy", "item", "tolist"})
_OF_TAPES = frozenset({"gradient", "watch"})
_OF_DICTIONARIES = frozenset({"items", "keys", "values"})


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
    if not uses or function.decorator_list or _may_be_saved(context, function):
        return None
    calls = []
    for use in uses:
        call = use.names.parents.get(use.node)
        if use.names is not context.names or not isinstance(call, ast.Call) or call.func is not use.node:
            return None
        loops = (parent for parent in context.names.ancestors(call) if isinstance(parent, (ast.For, ast.While)))
        if any(map(adds_layers, loops)) or is_tried_in_loop(context.names, call):
            return None
        calls.append(call.func)
    callees: list[ast.expr] = []
    return (
        TraceableStep(calls, callees)
        if _is_function_without_effects(context, context.names, function, callees, set())
        else None
    )


def is_tried_in_loop(names: Names, node: ast.AST) -> bool:
    """Return True if a loop goes on after an error of a step. A tf.function raises another one: it is traced first."""
    return any(
        isinstance(parent, ast.Try)
        and is_in_loop(names, parent)
        and any(not _ENDS.issuperset(_errors_of(handler)) for handler in parent.handlers)
        for parent in names.ancestors(node)
    )


def _errors_of(handler: ast.ExceptHandler) -> list[str]:
    errors = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [last_name(error) if error is not None else "" for error in errors]


def _may_be_saved(context: Context, function: ast.FunctionDef) -> bool:
    """Return True for a method of a class of TensorFlow if the program saves objects, with all their tf.functions.

    TensorFlow cannot save those that update an optimizer outside of the object.
    """
    owner = context.names.parents[function]
    return (
        isinstance(owner, ast.ClassDef)
        and any(base.startswith(("tensorflow.", "keras.")) for base in context.names.outside_ancestors(owner))
        and any(
            isinstance(node, ast.Attribute) and node.attr in _SAVING
            for theirs in context.once(names_of_surrounding_files)
            for node in ast.walk(theirs.tree)
        )
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
    return _have_fixed_defaults(context, names, arguments, callees, seen) and are_without_effects(
        context, names, nodes, own, callees, seen
    )


def _have_fixed_defaults(
    context: Context, names: Names, arguments: ast.arguments, callees: list[ast.expr], seen: set[ast.AST]
) -> bool:
    nodes = [node for default in arguments.defaults for node in ast.walk(default)]
    return are_without_effects(context, names, nodes, set(), callees, seen)


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
    if context.once(changes_in_hidden_ways):
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
        if node.id in own:
            return True
        changed = context.once(words_changed_in_place) | context.once(names_assigned_of_modules)
        return never_changes(names, node) and node.id not in changed and not _is_passed_function(context, names, node)
    if isinstance(node, ast.Attribute):
        return (
            isinstance(node.ctx, ast.Load)
            and not _may_be_assigned_in_training(context, names, node)
            and not _is_passed_function(context, names, node)
        )
    if isinstance(node, ast.Subscript):
        root = node.value
        is_own = isinstance(root, ast.Name) and root.id in own - {"self"}
        return isinstance(node.ctx, ast.Load) and (is_own or _is_constant_container(context, names, root))
    return True


def _is_passed_function(context: Context, names: Names, node: ast.expr) -> bool:
    """Return True for a function of the script that is not called here: other code may call it."""
    parent = names.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    if isinstance(node, ast.Attribute) and node.attr in context.once(_names_of_methods):
        return True
    definition = names.definition(node, names.place(node))
    if definition is not None:
        return isinstance(definition.node, ast.FunctionDef)
    binding = names.only_binding(node, names.place(node), "value")
    value = binding.node if binding is not None else None
    is_partial = isinstance(value, ast.Call) and names.resolve(value.func, names.place(value)) == "functools.partial"
    return isinstance(value, ast.Lambda) or is_partial


def _names_of_methods(context: Context) -> frozenset[str]:
    return frozenset(
        function.node.name
        for theirs in context.once(names_of_surrounding_files)
        for function in theirs.functions
        if isinstance(function.node, ast.FunctionDef) and isinstance(theirs.parents[function.node], ast.ClassDef)
    )


def _is_constant_container(context: Context, names: Names, node: ast.expr) -> bool:
    """Return True for the name of a dictionary, a list or a tuple of the file that never changes."""
    binding = names.only_binding(node, names.place(node), "value")
    return (
        binding is not None
        and isinstance(node, ast.Name)
        and isinstance(binding.node, (ast.Dict, ast.List, ast.Tuple))
        and never_changes(names, node)
        and node.id not in context.once(words_changed_in_place)
    )


def _is_read_from_object(node: ast.expr) -> bool:
    """Return True for an attribute that may be a list of Python, which other code may hold and change."""
    return isinstance(node, ast.Attribute) and node.attr not in OF_LAYERS


def _may_be_assigned_in_training(context: Context, names: Names, node: ast.Attribute) -> bool:
    """Return True if code may assign to an attribute while the program trains; also for what ``trainable`` decides."""
    if (names.resolve(node, names.place(node)) or "").startswith("tensorflow."):
        return False
    attributes = [node.attr, "trainable"] if node.attr.startswith("trainable") else [node.attr]
    return any(attribute in context.once(assigned_attributes) for attribute in attributes)


def _is_call_without_effect(
    context: Context, names: Names, call: ast.Call, callees: list[ast.expr], seen: set[ast.AST]
) -> bool:
    function, where = call.func, names.place(call)
    if any(keyword.arg is None for keyword in call.keywords) or last_name(function) in _READS:
        return False
    name = names.resolve(function, where) or ""
    if name.startswith("tensorflow."):
        if last_part(name) in _CALLING and not _is_of_tensorflow(names, call.args[:1]):
            return False
        return bool(_PURE.match(name)) or not _EFFECTS.match(name)
    if (
        isinstance(function, ast.Name)
        and function.id in BUILTINS
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
        return _have_fixed_defaults(context, names, binding.node.args, callees, seen) and are_without_effects(
            context, names, nodes, own, callees, seen
        )
    definition = names.definition(function, where)
    if definition is not None and isinstance(definition.node, ast.FunctionDef):
        inside: list[ast.expr] = []
        plain = (
            not definition.node.decorator_list
            and not _is_overridden(context, definition.node)
            and _is_function_without_effects(context, definition.names, definition.node, inside, seen)
        )
        callees.extend(inside if definition.names is names else ())
        return plain and (definition.names is context.names or not inside)
    if names is context.names and isinstance(function, (ast.Name, ast.Attribute)):
        callees.append(function)
        return True
    return False


def _is_of_tensorflow(names: Names, functions: Sequence[ast.expr]) -> bool:
    """Return True if functions that are passed are of TensorFlow."""
    resolved = [names.resolve(function, names.place(function)) or "" for function in functions]
    return bool(resolved) and all(name.startswith("tensorflow.") for name in resolved)


def _is_overridden(context: Context, function: ast.FunctionDef) -> bool:
    """Return True if a class of the files around a file has another method in place of one."""
    return any(
        overridden is function
        for theirs in context.once(names_of_surrounding_files)
        for other in theirs.functions
        if isinstance(other.node, ast.FunctionDef) and other.node.name == function.name
        for _, overridden in overridden_methods(theirs, other.node)
    )


def _is_tape(names: Names, node: ast.expr) -> bool:
    bindings = names.bindings_of_name(node.id, names.place(node)) or [] if isinstance(node, ast.Name) else []
    return bool(bindings) and all(
        binding.kind == "with"
        and isinstance(binding.node, ast.Call)
        and names.resolve(binding.node.func, binding.where) == "tensorflow.GradientTape"
        for binding in bindings
    )
