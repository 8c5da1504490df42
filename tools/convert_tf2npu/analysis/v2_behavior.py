"""Find the place where a program disables the behavior of TensorFlow 2.

This is done once, before anything builds a graph: after the script imports TensorFlow, or before the import of a module
of the project that builds a graph when it is imported.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..project.context import Context
from ..semantics.module_index import Names
from ..tf_api.v1_fate import V1
from .entry_points import entry_facts_of_files, entry_facts_with_imports, is_started
from .lines_before import position_of_line_before


class SwitchPlace(NamedTuple):
    """The place for the call that disables the behavior of TensorFlow 2.

    Attributes:
        statement: the statement before or after which the call is added, as a rule an import.
        module: the expression for compat.v1 there; "" if the file has none.
        local: the name under which compat.v1 is imported for the call; "" if the file has ``module``.
        is_before: True if the call precedes the statement.
        is_manual: True if the call must be added by hand.
    """

    statement: ast.stmt
    module: str = ""
    local: str = ""
    is_before: bool = False
    is_manual: bool = False


def place_of_switch(context: Context) -> SwitchPlace | None:
    """Return the place of the call in an entry script, or None if the script needs none."""
    if not is_started(context):
        return None
    whole = list(entry_facts_with_imports(context))
    if any(f.switched for f in whole) or not any(f.lifted or f.needs_switch for f in whole):
        return None
    names = context.names
    imports = _tensorflow_imports(names)
    at_top = [s for s in imports if names.places[s].scope is names.module]
    place = min(at_top, key=lambda s: s.lineno) if at_top else None
    if names.lift and names.lift.star and place in (names.lift.instead, None):
        place = names.lift.star.node  # tf is imported after it
    early = _first_project_import_of_tensorflow(context, place is not None)
    if early is not None and (place is None or early.lineno < place.lineno):
        return SwitchPlace(early, "", "tf", is_before=True, is_manual=position_of_line_before(context, early) is None)
    if place is not None:
        module = _compat_v1_expression(names, place)
        return SwitchPlace(place, module, "" if module else _free_name(context))
    inside = [s for s in imports if _compat_v1_expression(names, s)]
    if len({id(names.places[s].scope) for s in inside}) == 1:
        return SwitchPlace(inside[0], _compat_v1_expression(names, inside[0]))
    return SwitchPlace(inside[0] if inside else names.tree.body[0], is_manual=True)


def _tensorflow_imports(names: Names) -> list[ast.stmt]:
    """Return the imports that bind a name of TensorFlow."""
    return [
        s
        for s, where in names.places.items()
        if isinstance(s, (ast.Import, ast.ImportFrom))
        and any(
            b.node is s and b.target.partition(".")[0] == "tensorflow"
            for bindings in where.scope.bindings.values()
            for b in bindings
        )
    ]


def _first_project_import_of_tensorflow(context: Context, imports_tensorflow: bool) -> ast.stmt | None:
    """Return the first import of a project module that uses TensorFlow when it is imported, or None.

    Args:
        context: the file.
        imports_tensorflow: True if the file imports TensorFlow itself; otherwise each module with TensorFlow counts.
    """
    project = context.names.project
    for statement in context.names.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            paths: set[str] = set()
            for place in _imported_project_files(context, statement):
                paths |= project.with_imports(place)
            if any(f.works_on_import if imports_tensorflow else f.lifted for f in entry_facts_of_files(project, paths)):
                return statement
    return None


def _imported_project_files(context: Context, statement: ast.stmt) -> list[str]:
    """Return the files of the project that an import statement names."""
    names = context.names
    if isinstance(statement, ast.Import):
        dotted = [alias.name for alias in statement.names]
    else:
        assert isinstance(statement, ast.ImportFrom)
        base = "." * statement.level + (statement.module or "")
        dotted = [base] + [base + ("" if base.endswith(".") else ".") + a.name for a in statement.names]
    files = [names.project.file_of_module(name, names.path) for name in dotted]
    return [path for path in files if path]


def _compat_v1_expression(names: Names, statement: ast.stmt) -> str:
    """Return the expression for compat.v1 after an import of TensorFlow; "" if it imports only parts."""
    for local, bindings in names.places[statement].scope.bindings.items():
        for binding in bindings:
            if binding.node is statement and binding.target in ("tensorflow", V1):
                return local if binding.target == V1 else local + ".compat.v1"
    return ""


def _free_name(context: Context) -> str:
    """Return a name for compat.v1 that the file does not use."""
    used = set(context.names.module.bindings) | {root.id for root, _ in context.names.reads}
    return "tf" if "tf" not in used else "tensorflow"
