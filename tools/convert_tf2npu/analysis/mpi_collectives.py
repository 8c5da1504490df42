"""Find code that averages or broadcasts over the ranks with MPI (mpi4py)."""

from __future__ import annotations

import ast

from ..semantics.module_index import Names
from ..syntax.expressions import last_name

AVERAGES = frozenset({"Allreduce", "Iallreduce", "allreduce"})
BROADCASTS = frozenset({"Bcast", "Ibcast", "bcast"})
_DEEPEST = 3  # functions that call each other


def calls_mpi(part: ast.AST, names: Names, methods: frozenset[str], deepest: int = _DEEPEST) -> bool:
    """Return True if a part of a module, or a function of the project that it calls or passes, calls a method of MPI.

    Args:
        part: of the tree of the module, such as a function.
        names: of the module.
        methods: AVERAGES or BROADCASTS.
        deepest: the number of functions to follow.
    """
    return names.once(_calls_mpi, part, methods, deepest)


def _calls_mpi(names: Names, part: ast.AST, methods: frozenset[str], deepest: int) -> bool:
    calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)]
    if names.once(_imports_mpi) and any(
        isinstance(call.func, ast.Attribute) and last_name(call.func) in methods for call in calls
    ):
        return True
    used = [(node, call) for call in calls for node in (call.func, *call.args)] if deepest else []
    functions = (
        names.function_definition(node, names.place(call))
        for node, call in used
        if isinstance(node, (ast.Attribute, ast.Name))
    )
    return any(
        function.node is not part and calls_mpi(function.node, function.names, methods, deepest - 1)
        for function in functions
        if function is not None
    )


def _imports_mpi(names: Names) -> bool:
    modules = [
        module
        for statement in names.places
        for module in (
            [alias.name for alias in statement.names]
            if isinstance(statement, ast.Import)
            else [statement.module or ""]
            if isinstance(statement, ast.ImportFrom)
            else []
        )
    ]
    return any(module.partition(".")[0] == "mpi4py" for module in modules)
