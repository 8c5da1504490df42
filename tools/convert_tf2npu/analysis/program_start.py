"""Find the statement with which a program begins its work: behind flags and settings, before TensorFlow's first use."""

from __future__ import annotations

import ast
import re
from typing import Sequence

from ..project.context import Context
from ..project.import_statements import dotted_name
from ..semantics.mentions import mentions_of_function
from ..semantics.module_index import ModuleIndex, Names
from ..syntax.expressions import is_literal_statement, is_main_guard
from .command_functions import RUNNERS, started_functions
from .entry_points import scripts_importing
from .host_work import PLAIN_MODULES
from .preamble import (
    BEFORE_DEVICES,
    is_flag,
    is_harmless,
    is_value_without_effect,
    last_device_setting,
    names_called_in,
)

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Calls that make variables, which stay on the device of that time, or choose devices. Plain tensors are copied.
_BUILDERS = re.compile(
    r"tensorflow\.(Variable|distribute\.\w+Strategy|random\.\w+\.from_seed"
    r"|keras\.((models\.)?(Model|Sequential|load_model)|applications\.\w+\.\w+|metrics\.\w+))"
)
_WITHOUT_TENSORFLOW = PLAIN_MODULES - {"tensorflow"} | {"IPython", "ipywidgets", "platform", "seaborn", "signal"}


def first_working_statement(context: Context) -> ast.stmt | None:
    """Return the statement, which may be in the function that the program starts; None unless there is exactly one."""
    statements = first_working_statements(context)
    return statements[0] if len(statements) == 1 else None


def first_working_statements(context: Context) -> list[ast.stmt]:
    """Return the statement, or those in the functions of which the program starts one, as the commands of click."""
    names = context.names
    first = _first_statement_of_work(names, names.tree.body[_count_statements_before_frameworks(names) :])
    return _statements_beginning_work(names, first, set()) if first is not None else []


def _count_statements_before_frameworks(names: Names) -> int:
    """Return the number of statements at the top before the first import of a module that may use TensorFlow.

    They build nothing, as the cells of a notebook that install packages. 0 if a function imports such a module.
    """
    body = names.tree.body
    first = next((index for index, statement in enumerate(body) if _may_bring_tensorflow(statement)), 0)
    before = [s for s in body[:first] if any(map(_may_import_tensorflow, ast.walk(s)))]
    return 0 if before else first


def _may_bring_tensorflow(statement: ast.stmt) -> bool:
    return not isinstance(statement, _DEFINITIONS) and any(map(_may_import_tensorflow, ast.walk(statement)))


def _may_import_tensorflow(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or not _is_module_without_tensorflow(node.module or "")
    return isinstance(node, ast.Import) and not all(_is_module_without_tensorflow(alias.name) for alias in node.names)


def _is_module_without_tensorflow(module: str) -> bool:
    return module.startswith("google.colab") or module.partition(".")[0] in _WITHOUT_TENSORFLOW


def _statements_beginning_work(names: Names, statement: ast.stmt, entered: set[ast.AST]) -> list[ast.stmt]:
    """Return the statements that begin the work which a statement starts."""
    while statement not in entered:
        entered.add(statement)
        body = (
            statement.body
            if isinstance(statement, ast.If) and is_main_guard(statement)
            else _body_of_started_function(names, statement)
        )
        inner = _first_statement_of_work(names, body) if body else None
        if inner is None:
            firsts = [
                _first_statement_of_work(names, function.body) for function in started_functions(names, statement)
            ]
            starts = [
                _place_in_own_command(names, first, start)
                for first in firsts
                if first
                for start in _statements_beginning_work(names, first, entered)
            ]
            return list(dict.fromkeys(starts)) or [statement if not body or not is_main_guard(statement) else body[0]]
        statement = inner
    return [statement]


def _place_in_own_command(names: Names, first: ast.stmt, start: ast.stmt) -> ast.stmt:
    """Return the place in a command, not the one in a function that other commands may call, too."""
    function = next((node for node in names.ancestors(start) if isinstance(node, ast.FunctionDef)), None)
    is_shared = function is not None and len(names.mentions(function.name)) > 1
    return first if is_shared and names.places[start].scope is not names.places[first].scope else start


def _first_statement_of_work(names: Names, body: Sequence[ast.stmt]) -> ast.stmt | None:
    """Return the first statement of a block that may build something with TensorFlow, or start the program."""
    for index, statement in enumerate(body):
        if isinstance(statement, _DEFINITIONS) or is_flag(names, statement) or is_literal_statement(statement):
            continue
        if isinstance(statement, ast.Try) and all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in statement.body):
            continue
        if is_main_guard(statement) or _imports_module_with_variables(names, statement):
            return statement
        if is_harmless(names, statement) and not started_functions(names, statement):
            continue
        later = _statements_before_main_guard(body[index:])
        behind = index + 1 + last_device_setting(names, later)
        return _first_statement_of_work(names, body[behind:]) if behind > index else statement
    return None


def _imports_module_with_variables(names: Names, statement: ast.stmt) -> bool:
    """Return True if a statement imports a module of the project that makes variables when it is imported."""
    project = names.project
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return False
    if isinstance(statement, ast.Import):
        imported = [alias.name for alias in statement.names]
    else:
        module = "." * statement.level + (statement.module or "")
        imported = [module, *(dotted_name(module, alias.name) for alias in statement.names)]
    files = {project.file_of_module(module, names.path) for module in imported} - {None, names.path}
    return any(
        project.once(_creates_variables_on_import, path)
        for file in files
        if file
        for path in sorted(project.with_imports(file))
    )


def _creates_variables_on_import(project: ModuleIndex, path: str) -> bool:
    """Return True if a module makes variables when it is imported, and does not set up the devices."""
    raw = project.raw(path)
    module = project.module(path) if b"tensorflow" in raw or b"keras" in raw else None
    if module is None:
        return False
    names = module.names
    called = names_called_in(names, [s for s in names.tree.body if not is_main_guard(s)])
    return any(map(_BUILDERS.fullmatch, called)) and not any(map(BEFORE_DEVICES.fullmatch, called))


def _statements_before_main_guard(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    return body[: next((index for index, statement in enumerate(body) if is_main_guard(statement)), len(body))]


def _body_of_started_function(names: Names, statement: ast.stmt) -> Sequence[ast.stmt] | None:
    """Return the body of the function of this file that a statement only calls: ``main()``, ``app.run(main)``.

    A function whose result the script keeps is one that sets up devices: ``result = main()``.
    """
    while isinstance(statement, ast.Try) and len(statement.body) == 1:
        statement = statement.body[0]
    if isinstance(statement, ast.Assign):
        body = _body_of_local_function(names, getattr(statement.value, "func", None), statement)
        is_main = (
            body is not None and last_device_setting(names, body) >= 0 and _has_plain_arguments(names, statement.value)
        )
        return body if is_main else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(call, ast.Call):
        where = names.place(call)
        name = names.resolve(call.func, where)
        if call.args and (name in RUNNERS or _passes_first_argument_to_runner(names, call)):
            call = call.args[0]
            continue
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Lambda) and _is_call_of_runner(
            names, given.body
        ):  # handle_main(lambda _: app.run(main))
            call = given.body
            continue
        if isinstance(given, ast.Call) and len(given.args) == 2 and _is_call_of_runner(names, given):
            call = given.args[1]  # handle_main(functools.partial(app.run, main))
            continue
        return _body_of_local_function(names, call.func, statement) if _has_plain_arguments(names, call) else None
    return _body_of_local_function(names, call, statement) if call is not None else None


def _has_plain_arguments(names: Names, call: ast.expr) -> bool:
    """Return True unless the arguments of a call may begin the work."""
    return all(is_value_without_effect(names, value) for value in getattr(call, "args", ()))


def _passes_first_argument_to_runner(names: Names, call: ast.Call) -> bool:
    """Return True if a call is of a function of the project that gives its first argument to a runner."""
    function = names.function_definition(call.func, names.place(call))
    if function is None or not function.node.args.args:
        return False
    given = function.node.args.args[0].arg
    return any(
        isinstance(node, ast.Call)
        and node.args
        and getattr(node.args[0], "id", None) == given
        and _is_call_of_runner(function.names, node)
        for node in ast.walk(function.node)
    )


def _is_call_of_runner(names: Names, node: ast.AST) -> bool:
    """Return True for a call of a runner, and for functools.partial of one."""
    if not isinstance(node, ast.Call):
        return False
    where = names.place(node)
    name = names.resolve(node.func, where)
    if name == "functools.partial" and node.args:
        name = names.resolve(node.args[0], where)
    return name in RUNNERS


def _body_of_local_function(names: Names, function: ast.AST | None, statement: ast.stmt) -> Sequence[ast.stmt] | None:
    definition = (
        names.function_definition(function, names.places[statement]) if isinstance(function, ast.Name) else None
    )
    if definition is None or definition.names is not names:
        return None
    body = definition.node.body
    # The script that imports the function opens the device itself.
    return (
        None if _is_called_by_other_scripts(names, definition.node) and last_device_setting(names, body) < 0 else body
    )


def _is_called_by_other_scripts(names: Names, function: ast.FunctionDef) -> bool:
    """Return True if other scripts of the project call a function, tests left out."""
    project = names.project
    if not project.direct_importers(names.path):
        return False
    others = {path for script in scripts_importing(project, names.path) for path in project.with_imports(script)} - {
        names.path
    }
    return bool(others) and any(mention.names.path in others for mention in mentions_of_function(function, names) or ())
