"""Call sites: the values that the calls in the project pass to the parameters of a function."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import Iterator, NamedTuple

from ..syntax.words import words_in
from .model import Binding, Where
from .module_index import Instance, ModuleIndex, Names
from .resolved_name import ResolvedName

_CALL_NOTHING = frozenset({"abc.ABC", "object", "tensorflow.Module"})  # bases that call no methods of their classes
_TRANSPARENT = frozenset({"tensorflow.function", "tensorflow.autograph.experimental.do_not_convert"})  # decorators
_STAR = re.compile(rb"import[ \t]*\*")


class PassedValue(NamedTuple):
    """A value that a call passes to a parameter: the expression, its place, the names of its module."""

    value: ast.expr
    where: Where
    names: Names


def values_passed_to_parameter(parameter: Binding, names: Names) -> list[PassedValue] | None:
    """Return the values that all calls in the project pass to a parameter of a function, or of ``__init__`` of a class.

    Args:
        parameter: the binding of the parameter.
        names: of the module of the function.

    Returns:
        the values; None if they are not all: the function is not only called by its name, or never called, or a call
        hides its arguments.
    """
    function = parameter.where.scope.node
    if not isinstance(function, ast.FunctionDef) or parameter.kind != "arg":
        return None
    parent = names.parents.get(function)
    target = parent if isinstance(parent, ast.ClassDef) and function.name == "__init__" else function
    defined = names.module.bindings.get(target.name, [])
    if len(defined) != 1 or defined[0].node is not target or not _receives_call_arguments(function, names):
        return None  # a method, an inner function, or one of several
    called = Called(target, function, names)
    values: list[PassedValue] = []
    for user in chain([names], _modules_using(names, target.name)):
        theirs = None if user is None else _values_passed_in_module(parameter, called, user)
        if theirs is None:
            return None
        values += theirs
    return values or None


def values_passed_to_method(parameter: Binding, names: Names) -> list[PassedValue] | None:
    """Return the values that the calls in the project pass to a parameter of a method, other than ``__init__``.

    Calls are all those of its name behind a dot, except on an object that is certainly another one. This reads each
    file with the name, so ask it only where :func:`values_passed_to_parameter` has no answer and much depends on one.

    Returns:
        the values; None if they are not all, also because the class has a base outside the project, which may call.
    """
    function = parameter.where.scope.node
    owner = names.parents.get(function)
    if not (isinstance(function, ast.FunctionDef) and isinstance(owner, ast.ClassDef) and parameter.kind == "arg"):
        return None
    if function.name.startswith("__") or not function.args.args or not _receives_call_arguments(function, names):
        return None
    if names.outside_ancestors(owner) - _CALL_NOTHING:
        return None
    called = Called(function, function, names)
    values: list[PassedValue] = []
    for user in _modules_with_word(names, function.name):
        theirs = None if user is None else _values_passed_in_module(parameter, called, user, is_method=True)
        if theirs is None:
            return None
        values += theirs
    return values or None


def _receives_call_arguments(function: ast.FunctionDef, names: Names) -> bool:
    """Return True if a function gets the arguments of its calls; a decorator may change them."""
    decorators = (getattr(decorator, "func", decorator) for decorator in function.decorator_list)
    return all(names.resolve(name, names.place(function)) in _TRANSPARENT for name in decorators)


def _modules_with_word(names: Names, name: str) -> Iterator[Names | None]:
    """Yield a module and the others of the project with a word in them; None for one that cannot be read."""
    yield names
    project = names.project
    for path in project.paths if names.is_in_project else ():
        if path != names.path and path.endswith((".py", ".pyw", ".ipynb")) and name.encode() in project.raw(path):
            module = project.module(path)
            yield None if module is None else module.names


class Called(NamedTuple):
    """A function that is called, or a class with its ``__init__``, with the names of its module."""

    target: ast.FunctionDef | ast.ClassDef
    function: ast.FunctionDef
    names: Names


def modules_using(names: Names, name: str) -> list[Names] | None:
    """Return the other modules of the project that may use something that a module defines.

    Args:
        names: of the module.
        name: of a function or class in it.

    Returns:
        those that import it, or a module that exports it too, and contain the word; None if one of them cannot be
        read.
    """
    modules: list[Names] = []
    for user in _modules_using(names, name):
        if user is None:
            return None
        modules.append(user)
    return modules


def _modules_using(names: Names, name: str) -> Iterator[Names | None]:
    """Yield the modules of :func:`modules_using`; None for one that cannot be read, which is the last."""
    project = names.project
    seen, todo = {names.path}, [names.path]
    while todo:
        for path in project.once(_importers_with_name, todo.pop(), name):
            if path in seen:
                continue
            seen.add(path)
            module = project.module(path)
            if module is None:
                yield None
                return
            yield module.names
            if module.names.name_for_importers(name) == ResolvedName(name, names.path):
                todo.append(path)


def _importers_with_name(project: ModuleIndex, path: str, name: str) -> list[str]:
    """Return the files that import a file and contain a name, or have a star import."""
    return [
        importer
        for importer in project.direct_importers(path)
        if name.encode("utf-8") in project.once(_words_of_file, importer) or project.once(_has_star_import, importer)
    ]


def _words_of_file(project: ModuleIndex, path: str) -> frozenset[bytes]:
    """Return the words of a file. Many names are looked for in the files that import others."""
    return words_in(project.raw(path))


def _has_star_import(project: ModuleIndex, path: str) -> bool:
    """Return True if a file has a star import."""
    raw = project.raw(path)
    return b"*" in raw and _STAR.search(raw) is not None


def _values_passed_in_module(
    parameter: Binding, called: Called, user: Names, is_method: bool = False
) -> list[PassedValue] | None:
    """Return the values that the calls in one module pass to a parameter; None if they are not visible."""
    function = called.function
    first = 1 if called.target is not function or is_method else 0  # after self
    parameters = [a.arg for a in function.args.args[first:] + function.args.kwonlyargs]
    name = getattr(parameter.node, "arg", "")
    default = _defaults_by_parameter(function).get(name)
    values: list[PassedValue] = []
    for node in user.mentions(called.target.name):
        call = user.parents.get(node)
        is_called = isinstance(call, ast.Call) and (call.func is node or _is_partial(call, node, user))
        where = user.place(call if is_called and call is not None else node)
        if not (may_be_method(node, where, user, called) if is_method else may_refer_to(node, where, user, called)):
            continue
        if (
            not isinstance(call, ast.Call)
            or not is_called
            or is_method
            and user.definition(getattr(node, "value"), where) is not None  # Net.encode(net, ...)
            or any(isinstance(a, ast.Starred) for a in call.args)
            or any(k.arg is None for k in call.keywords)
        ):
            return None
        is_whole = call.func is node
        given = dict(zip(parameters, call.args if is_whole else call.args[1:]))
        given.update((k.arg, k.value) for k in call.keywords if k.arg)
        if name in given:
            values.append(PassedValue(given[name], where, user))
        elif default is not None and is_whole:
            values.append(PassedValue(default, called.names.places[function], called.names))
        else:
            return None
    return values


def _is_partial(call: ast.Call, node: ast.AST, user: Names) -> bool:
    """Return True for ``functools.partial(f, ...)`` with a mention of f."""
    return bool(call.args) and call.args[0] is node and user.resolve(call.func, user.place(call)) == "functools.partial"


def may_refer_to(node: ast.AST, where: Where, user: Names, called: Called) -> bool:
    """Return True if a mention of the name of a function or class may refer to it."""
    if user is called.names and isinstance(node, ast.Name):
        return any(b.node is called.target for b in user.bindings_of_name(node.id, where) or ())
    name = user.resolved_name(node, where)
    if name is None:
        defined = user.definition(node, where)
        return defined[0] is called.target if defined is not None else not _is_attribute_of_object(node, where, user)
    return name == ResolvedName(called.target.name, called.names.path)


def _is_attribute_of_object(node: ast.AST, where: Where, user: Names) -> bool:
    """Return True for an attribute of a parameter or of an object that a library makes, which is no module."""
    value = getattr(node, "value", None)
    bindings = user.bindings_of_name(value.id, where) if isinstance(value, ast.Name) else None
    return bool(bindings) and all(
        binding.kind == "arg"
        or binding.kind == "value"
        and isinstance(binding.node, ast.Call)
        and not (user.resolve(binding.node.func, binding.where) or "importlib").startswith("importlib")
        for binding in bindings or ()
    )


def may_be_method(node: ast.AST, where: Where, user: Names, called: Called) -> bool:
    """Return True if a mention of a name may be a method of an object of a class, and not what a module defines."""
    if not isinstance(node, ast.Attribute):
        return False
    name = user.resolved_name(node, where)
    if name is not None and not name.is_definition:
        return False
    kind = user.types.type_of(node.value, where)
    if not isinstance(kind, Instance):
        return kind is None
    owner = called.names.parents[called.function]
    return kind.owner is owner or bool(kind.owner.bases or getattr(owner, "bases", ()))  # one may derive from the other


def default_of_parameter(parameter: Binding) -> ast.expr | None:
    """Return the default of a parameter of a function."""
    function = parameter.where.scope.node
    return (
        _defaults_by_parameter(function).get(getattr(parameter.node, "arg", ""))
        if isinstance(function, ast.FunctionDef)
        else None
    )


def _defaults_by_parameter(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the defaults of the parameters of a function."""
    args, defaults = function.args, {}
    for arg, default in zip(reversed(args.args), reversed(args.defaults)):
        defaults[arg.arg] = default
    for arg, kw_default in zip(args.kwonlyargs, args.kw_defaults):
        if kw_default is not None:
            defaults[arg.arg] = kw_default
    return defaults
