"""Find the functions that a command-line program may start: those of a click group, of typer and of fire."""

from __future__ import annotations

import ast
from typing import Iterable

from ..semantics.model import Where
from ..semantics.module_index import Names
from .near_frameworks import near_frameworks

_FIRE = "fire.Fire"
# Functions that call the function they are given, as in app.run(main).
RUNNERS = frozenset({"absl.app.run", "tensorflow.app.run", _FIRE, "typer.run", "sys.exit", "asyncio.run"})


def started_functions(names: Names, statement: ast.stmt) -> list[ast.FunctionDef]:
    """Return the functions of this file of which a statement starts one, as ``cli()`` and ``fire.Fire()`` do.

    Returns:
        those that use TensorFlow; none if the program may start functions that are not known.
    """
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return []
    where = names.place(call)
    if names.resolve(call.func, where) == _FIRE:
        functions = _functions_given_to_fire(names, call, where)
    elif isinstance(call.func, ast.Name) and _is_group(names, call.func, where):
        functions = _commands_of_group(names, call.func.id, ())
    else:
        functions = None
    return [function for function in functions or () if _uses_tensorflow(names, function, set())]


def _is_group(names: Names, node: ast.Name, where: Where) -> bool:
    """Return True if a name is a function that click.group decorates, or a typer.Typer."""
    binding = names.only_binding(node, where)
    if binding is None or binding.node is None:
        return False
    if binding.kind == "value":
        call = binding.node
        return isinstance(call, ast.Call) and names.resolve(call.func, binding.where) == "typer.Typer"
    return binding.kind == "def" and any(
        names.resolve(_decorator_function(decorator), binding.where) == "click.group"
        for decorator in getattr(binding.node, "decorator_list", ())
    )


def _commands_of_group(names: Names, group: str, outer: tuple[str, ...]) -> list[ast.FunctionDef] | None:
    """Return the commands of a group and of its groups; None if it has others, or is one of the outer groups."""
    if group in outer:
        return None
    members: list[ast.FunctionDef] = []
    for candidate in names.functions:
        for decorator in getattr(candidate.node, "decorator_list", ()):
            maker = _decorator_function(decorator)
            if not isinstance(maker, ast.Attribute) or getattr(maker.value, "id", "") != group:
                continue
            assert isinstance(candidate.node, (ast.FunctionDef, ast.AsyncFunctionDef))
            inner = _commands_of_group(names, candidate.node.name, (*outer, group)) if maker.attr == "group" else []
            if inner is None or not isinstance(candidate.node, ast.FunctionDef):
                return None
            members += inner or [candidate.node]
    for call in names.calls:
        function = call.node.func
        if isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == group:
            if function.attr == "add_command" and call.node.args:
                added = _named_functions(names, call.node.args[:1], call.where)
                if added is None:
                    return None
                members += added
            elif function.attr in ("add_command", "add_typer"):
                return None
    return members


def _functions_given_to_fire(names: Names, call: ast.Call, where: Where) -> list[ast.FunctionDef] | None:
    component = next(iter([*call.args, *(k.value for k in call.keywords if k.arg == "component")]), None)
    if isinstance(component, ast.Dict):
        return _named_functions(names, component.values, where)
    if component is not None:
        its_class = names.class_definition(component, where) if isinstance(component, ast.Name) else None
        if its_class is None or its_class.names is not names:
            return None
        return [s for s in its_class.node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    own = [s for s in names.tree.body if isinstance(s, ast.FunctionDef)]
    return [function for function in own if not function.name.startswith("_") and not names.mentions(function.name)]


def _named_functions(names: Names, nodes: Iterable[ast.expr], where: Where) -> list[ast.FunctionDef] | None:
    """Return the functions of this file that expressions name; None if one names something else."""
    functions: list[ast.FunctionDef] = []
    for node in nodes:
        function = names.function_definition(node, where) if isinstance(node, ast.Name) else None
        if function is None or function.names is not names:
            return None
        functions.append(function.node)
    return functions


def _decorator_function(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _uses_tensorflow(names: Names, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Return True if code names TensorFlow, or something of the project that may."""
    if node in seen:
        return False
    seen.add(node)
    for part in ast.walk(node):
        if not isinstance(part, (ast.Name, ast.Attribute)):
            continue
        where = names.place(part)
        if (names.resolve(part, where) or "").partition(".")[0] == "tensorflow":
            return True
        definition = names.definition(part, where)
        if definition is None:
            continue
        if definition.names is names:
            if _uses_tensorflow(names, definition.node, seen):
                return True
        elif definition.names.path in names.project.once(near_frameworks):
            return True
    return False
