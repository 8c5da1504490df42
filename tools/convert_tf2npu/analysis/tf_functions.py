"""Find the functions that TensorFlow traces into graphs: those of tf.function, and the steps of Keras models."""

from __future__ import annotations

import ast
from typing import Iterator

from ..semantics.mentions import mentions
from ..semantics.model import Call, Where
from ..semantics.module_index import Names
from ..syntax.expressions import last_part
from .commands import RUNNERS
from .device_placement import belongs_to_test

FUNCTION = "tensorflow.function"
STEPS = frozenset({"train_step", "test_step", "predict_step"})
_COMPILED_METHODS = STEPS | {"call"}
_MODELS = frozenset({"Model", "Sequential", "Functional"})
_PYTHON = frozenset({"py_function", "numpy_function", "py_func"})


def names_function(text: str) -> bool:
    """Return True if a text may name tf.function; cheaper than name resolution."""
    return ".function" in text or "import function" in text


def functions_around(names: Names, node: ast.AST) -> list[ast.FunctionDef]:
    """Return the functions around a node, the innermost first."""
    return [parent for parent in names.ancestors(node) if isinstance(parent, ast.FunctionDef)]


def is_traced(names: Names, node: ast.AST) -> bool:
    """Return True if an expression is certainly in a function that TensorFlow traces."""
    traced = names.once(traced_functions)
    return bool(traced) and any(function in traced for function in functions_around(names, node))


def signature_of(names: Names, function: ast.AST) -> ast.Call | None:
    """Return the call of tf.function with arguments that decorates a function, if there is one."""
    where = names.places.get(function)
    for decorator in getattr(function, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and where and names.resolve(decorator.func, where) == FUNCTION:
            return decorator
    return None


def is_decorated(names: Names, function: ast.AST) -> bool:
    """Return True if tf.function decorates a function."""
    where = names.places.get(function)
    return where is not None and any(
        names.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator, where) == FUNCTION
        for decorator in getattr(function, "decorator_list", ())
    )


def traced_functions(names: Names) -> frozenset[ast.AST]:
    """Return the functions of a file that are certainly traced: by tf.function, by Keras, or called by one of these.

    A function that Python runs on the host (tf.py_function) is not among them.
    """
    found: set[ast.AST] = {f.node for f in names.functions if is_decorated(names, f.node)}
    on_host: set[ast.AST] = set()
    calls: dict[ast.AST, list[ast.AST]] = {}
    for call in names.calls:
        name = names.resolve(call.node.func, call.where)
        if name == FUNCTION or last_part(name) in _PYTHON and (name or "").startswith("tensorflow."):
            for argument in call.node.args[:1]:
                made = _definition(names, argument, call.where)
                if made is not None:
                    (found if name == FUNCTION else on_host).add(made)
    found |= {
        node
        for owner, _ in names.classes
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
        and node.name in STEPS
        and any(
            base.startswith(("tensorflow.keras.", "keras.")) and last_part(base) in _MODELS
            for base in names.ancestry(owner)
        )
    }
    if not found:
        return frozenset()
    for call in names.calls:
        around = functions_around(names, call.node)
        if around:
            made = _definition(names, call.node.func, call.where)
            if made is not None:
                calls.setdefault(around[0], []).append(made)
    todo = list(found)
    while todo:
        function = todo.pop()
        for called in calls.get(function, ()):
            if called not in found and called not in on_host:
                found.add(called)
                todo.append(called)
    return frozenset(found - on_host)


def _definition(names: Names, node: ast.AST, where: Where) -> ast.AST | None:
    """Return the function of this file that an expression names."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    made = names.definition(node, where)
    return made.node if made is not None and made.names is names and isinstance(made.node, ast.FunctionDef) else None


def may_be_traced(names: Names, function: ast.FunctionDef) -> bool:
    """Return True if a function may run inside a tf.function, as far as the project shows."""
    return _may_be(names, function, set())


def _may_be(names: Names, function: ast.FunctionDef, seen: set[ast.AST]) -> bool:
    if function in seen:
        return False
    seen.add(function)
    where = names.places[function]
    for decorator in function.decorator_list:
        if any(names.resolve(part, where) == FUNCTION for part in ast.walk(decorator)):
            return True
    parent = names.parents.get(function)
    if isinstance(parent, ast.ClassDef) and function.name in _COMPILED_METHODS:
        return True
    return any(
        _is_used_in_traced(theirs, each, seen) for theirs, each in [(names, function), *_overridden(names, function)]
    )


def _is_used_in_traced(names: Names, function: ast.FunctionDef, seen: set[ast.AST]) -> bool:
    found = mentions(function, names)
    if found is None:
        return True  # in a file that cannot be read
    for mention in found:
        user = mention.names
        call = user.parents.get(mention.node)
        if isinstance(call, ast.Call) and user.resolve(call.func, user.place(call)) in RUNNERS:
            continue
        if not isinstance(call, ast.Call) or mention.node is not call.func:
            return True  # passed to other code, as to tf.function or strategy.run
        if any(_may_be(user, around, seen) for around in functions_around(user, mention.node)):
            return True
    return False


def _overridden(names: Names, function: ast.FunctionDef) -> Iterator[tuple[Names, ast.FunctionDef]]:
    """Yield the methods of base classes in the project that a method overrides: code that calls them calls it, too."""
    owner = names.parents.get(function)
    if not isinstance(owner, ast.ClassDef):
        return
    for base in owner.bases:
        definition = names.definition(base, names.places[owner])
        if definition is None or not isinstance(definition.node, ast.ClassDef):
            continue
        for held in definition.names.held(definition.node, function.name):
            method = held.binding.node
            if isinstance(method, ast.FunctionDef) and method is not function:
                yield held.names, method
                yield from _overridden(held.names, method)


def is_used(names: Names, function: ast.FunctionDef) -> bool:
    """Return True if the project uses a function outside its tests, as far as names show."""
    for theirs, method in [(names, function), *_overridden(names, function)]:
        found = mentions(method, theirs)
        if found is None or any(not belongs_to_test(mention.names, mention.node) for mention in found):
            return True
    return False


def function_call(names: Names, call: Call) -> ast.FunctionDef | None:
    """Return the function of this file that a call calls if tf.function decorates it."""
    made = _definition(names, call.node.func, call.where)
    return made if isinstance(made, ast.FunctionDef) and is_decorated(names, made) else None
