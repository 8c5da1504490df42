"""Find the functions that TensorFlow traces into graphs: those of tf.function, and the steps of Keras models."""

from __future__ import annotations

import ast
import re
from typing import Callable, Iterator, NamedTuple

from ..semantics.mentions import mentions_of_function
from ..semantics.model import Call, Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.tf_types import METHODS_RUN_ONCE, PYTHON_CALLS
from ..semantics.value_flow import origins
from ..syntax.expressions import last_part
from .command_functions import RUNNERS
from .device_placement import belongs_to_test
from .near_frameworks import near_frameworks

FUNCTION = "tensorflow.function"
STEPS = frozenset({"train_step", "test_step", "predict_step"})
_COMPILED_METHODS = STEPS | {"call"}
_MODELS = frozenset({"Model", "Sequential", "Functional"})
# The module of Defun, which programs of TensorFlow 1 import, has this name, too.
_NAMED = re.compile(rb"\.function\b|\bimport\b(?<!tensorflow\.python\.framework import)[^\n]*\bfunction\b")
RUN = frozenset({"run", "experimental_run_v2"})  # of a strategy


class TracedFunction(NamedTuple):
    """A function that a tf.function runs, the names of its module, and the call with the arguments of tf.function."""

    node: ast.FunctionDef
    names: Names
    maker: ast.Call | None


def may_use_tf_function(names: Names, text: str) -> bool:
    """Return True if a file or one that it imports may name tf.function; cheaper than name resolution."""
    return _mentions_tf_function(text.encode("utf-8", "surrogatepass")) or names.once(_imports_tf_functions)


def _mentions_tf_function(raw: bytes) -> bool:
    at = raw.find(b"function")
    while at >= 0:
        end = raw.find(b"\n", at) % (len(raw) + 1)  # the last line has no end
        if _NAMED.search(raw, raw.rfind(b"\n", 0, at) + 1, end):
            return True
        at = raw.find(b"function", end)
    return False


def _imports_tf_functions(names: Names) -> bool:
    defining = names.project.once(_files_mentioning_tf_function)
    return bool(defining) and not defining.isdisjoint(names.project.with_imports(names.path))


def _files_mentioning_tf_function(project: ModuleIndex) -> frozenset[str]:
    return frozenset(path for path in project.once(near_frameworks) if _mentions_tf_function(project.raw(path)))


def enclosing_functions(names: Names, node: ast.AST) -> list[ast.FunctionDef]:
    """Return the functions around a node, the innermost first."""
    return [parent for parent in names.ancestors(node) if isinstance(parent, ast.FunctionDef)]


def is_traced(names: Names, node: ast.AST) -> bool:
    """Return True if an expression is certainly in a function that TensorFlow traces."""
    return any(
        function in names.once(traced_functions) or names.once(_is_traced_elsewhere, function)
        for function in enclosing_functions(names, node)
    )


def _is_traced_elsewhere(names: Names, function: ast.FunctionDef) -> bool:
    """Return True if a traced function of another file calls a function, or another file passes it to tf.function."""
    return _is_used_by_traced(names, function, set())


def _is_used_by_traced(names: Names, function: ast.FunctionDef, seen: set[tuple[str, str]]) -> bool:
    key = names.path, function.name
    if names.parents.get(function) is not names.tree or key in seen:
        return False
    seen.add(key)
    for mention in mentions_of_function(function, names) or ():
        user, node = mention.names, mention.node
        call = user.parents.get(node)
        definition = user.definition(node, mention.where) if user is not names and isinstance(call, ast.Call) else None
        if (
            definition is None
            or definition.names.path != names.path
            or getattr(definition.node, "name", "") != function.name
        ):
            continue
        assert isinstance(call, ast.Call)
        if _is_tf_function(user, call, mention.where):
            return True
        runs = getattr(call.func, "attr", "") in RUN and node in call.args[:1]
        if (runs or node is call.func) and any(
            around in user.once(traced_functions) or _is_used_by_traced(user, around, seen)
            for around in enclosing_functions(user, call)
        ):
            return True
    return False


def _is_tf_function(names: Names, node: ast.AST, where: Where) -> bool:
    """Return True for tf.function, also with arguments, and for functools.partial of it."""
    if not isinstance(node, ast.Call):
        return names.resolve(node, where) == FUNCTION
    name = names.resolve(node.func, where)
    return (
        name == FUNCTION
        or name == "functools.partial"
        and any(names.resolve(argument, where) == FUNCTION for argument in node.args[:1])
    )


def tf_function_decorator(names: Names, function: ast.AST) -> ast.AST | None:
    """Return the decorator that makes a tf.function of a function, if there is one."""
    where = names.places.get(function)
    decorators = getattr(function, "decorator_list", ()) if where else ()
    return next((decorator for decorator in decorators if where and _is_tf_function(names, decorator, where)), None)


def traced_functions(names: Names) -> frozenset[ast.AST]:
    """Return the functions of a file that are certainly traced: by tf.function, by Keras, or called by one of these.

    A function that Python runs on the host (tf.py_function) is not among them.
    """
    traced: set[ast.AST] = {f.node for f in names.functions if tf_function_decorator(names, f.node) is not None}
    on_host: set[ast.AST] = set()
    for call in names.calls:
        name = names.resolve(call.node.func, call.where)
        makes = (
            name == FUNCTION
            or isinstance(call.node.func, ast.Call)
            and _is_tf_function(names, call.node.func, call.where)
        )
        if makes or last_part(name) in PYTHON_CALLS and (name or "").startswith("tensorflow."):
            for argument in call.node.args[:1]:
                function = _function_of_file(names, argument, call.where)
                if function is not None:
                    (traced if makes else on_host).add(function)
    traced |= _keras_methods(names, STEPS, _MODELS)
    return _with_called_functions(names, traced, on_host) if traced else frozenset()


def layer_call_functions(names: Names) -> frozenset[ast.AST]:
    """Return the methods ``call`` of the layers and models of a file, and the functions that they call each time.

    Keras traces them, unless a program calls the model in eager code.
    """
    calls = _keras_methods(names, frozenset({"call"}), None)
    once: set[ast.AST] = {f.node for f in names.functions if getattr(f.node, "name", "") in METHODS_RUN_ONCE}
    return _with_called_functions(names, calls, once, is_conditional) if calls else frozenset()


def _keras_methods(names: Names, method_names: frozenset[str], base_names: frozenset[str] | None) -> set[ast.AST]:
    """Return the methods of these names in classes that derive from these classes of Keras; None for any of Keras."""
    return {
        node
        for owner, _ in names.classes
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
        and node.name in method_names
        and any(
            base.startswith(("tensorflow.keras.", "keras.")) and (base_names is None or last_part(base) in base_names)
            for base in names.outside_ancestors(owner)
        )
    }


def is_conditional(names: Names, node: ast.AST) -> bool:
    """Return True if an expression of a function may run only sometimes, or elsewhere: under ``if``, in a lambda."""
    for parent in names.ancestors(node):
        if isinstance(parent, ast.FunctionDef):
            return False
        if isinstance(parent, (ast.If, ast.IfExp, ast.Lambda)):
            return True
    return False


def _with_called_functions(
    names: Names, functions: set[ast.AST], excluded: set[ast.AST], skips: Callable[[Names, ast.AST], bool] | None = None
) -> frozenset[ast.AST]:
    """Return functions and those of the file that they call, except some functions and some calls."""
    calls: dict[ast.AST, list[ast.AST]] = {}
    for call in names.calls:
        around = enclosing_functions(names, call.node)
        if around:
            runs = getattr(call.node.func, "attr", "") in RUN
            for called_node in [call.node.func, *(call.node.args[:1] if runs else ())]:
                callee = _function_of_file(names, called_node, call.where)
                if callee is not None and not (skips and skips(names, call.node)):
                    calls.setdefault(around[0], []).append(callee)
    functions, todo = set(functions), list(functions)
    while todo:
        function = todo.pop()
        for called in calls.get(function, ()):
            if called not in functions and called not in excluded:
                functions.add(called)
                todo.append(called)
    return frozenset(functions - excluded)


def _function_of_file(names: Names, node: ast.AST, where: Where) -> ast.AST | None:
    """Return the function of this file that an expression names."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    function = names.function_definition(node, where)
    return function.node if function is not None and function.names is names else None


def may_be_traced(names: Names, function: ast.FunctionDef) -> bool:
    """Return True if a function may run inside a tf.function, as far as the project shows."""
    return _may_run_traced(names, function, set())


def _may_run_traced(names: Names, function: ast.FunctionDef, seen: set[ast.AST]) -> bool:
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
        _is_used_in_traced(theirs, method, seen)
        for theirs, method in [(names, function), *overridden_methods(names, function)]
    )


def _is_used_in_traced(names: Names, function: ast.FunctionDef, seen: set[ast.AST]) -> bool:
    uses = mentions_of_function(function, names, of_objects=True)
    if uses is None:
        return True  # in a file that cannot be read
    for mention in uses:
        user = mention.names
        call = user.parents.get(mention.node)
        if isinstance(call, ast.Call) and user.resolve(call.func, user.place(call)) in RUNNERS:
            continue
        runs = isinstance(call, ast.Call) and getattr(call.func, "attr", "") in RUN and mention.node in call.args[:1]
        if not isinstance(call, ast.Call) or mention.node is not call.func and not runs:
            return True  # passed to other code, as to tf.function
        if any(_may_run_traced(user, around, seen) for around in enclosing_functions(user, mention.node)):
            return True
    return False


def overridden_methods(names: Names, function: ast.FunctionDef) -> Iterator[tuple[Names, ast.FunctionDef]]:
    """Yield the methods of base classes in the project that a method overrides: code that calls them calls it, too."""
    owner = names.parents.get(function)
    if not isinstance(owner, ast.ClassDef):
        return
    for base in owner.bases:
        its_class = names.class_definition(base, names.places[owner])
        for held in its_class.names.attribute_bindings(its_class.node, function.name) if its_class else ():
            method = held.binding.node
            if isinstance(method, ast.FunctionDef) and method is not function:
                yield held.names, method
                yield from overridden_methods(held.names, method)


def is_function_used_outside_tests(names: Names, function: ast.FunctionDef) -> bool:
    """Return True if the project uses a function outside its tests, as far as names show."""
    for theirs, method in [(names, function), *overridden_methods(names, function)]:
        uses = mentions_of_function(method, theirs, of_objects=True)
        if uses is None or any(not belongs_to_test(mention.names, mention.node) for mention in uses):
            return True
    return False


def traced_function_of(names: Names, call: Call) -> TracedFunction | None:
    """Return the function that a call runs as a tf.function: a decorated one, or ``f`` of ``step = tf.function(f)``."""
    if not isinstance(call.node.func, (ast.Name, ast.Attribute)):
        return None
    for origin in origins(call.node.func, call.where, names):
        node, theirs = origin.node, origin.names
        if isinstance(node, ast.FunctionDef):
            maker = tf_function_decorator(theirs, node)
            if maker is not None:
                return TracedFunction(node, theirs, maker if isinstance(maker, ast.Call) else None)
        elif isinstance(node, ast.Call) and node.args:
            function = theirs.function_definition(node.args[0], origin.where)
            maker = node.func if isinstance(node.func, ast.Call) else node
            if function is not None and _is_tf_function(theirs, maker, origin.where):
                assert isinstance(maker, ast.Call)
                return TracedFunction(function.node, function.names, maker)
    return None


def may_have_signature(function: TracedFunction) -> bool:
    """Return True if the call of tf.function may have an ``input_signature``."""
    maker = function.maker
    if maker is None:
        return False
    return any(keyword.arg in (None, "input_signature") for keyword in maker.keywords) or len(maker.args) > 1
