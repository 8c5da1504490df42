"""Find the backends that programs choose for Keras."""

from __future__ import annotations

import ast
from typing import Iterator

from ..semantics.module_index import ModuleIndex, Names
from ..syntax.expressions import boxed_constant, constant_or, index_of, last_name, last_part
from .entry_points import scripts_importing

_VARIABLE = "KERAS_BACKEND"
_WORDS = (_VARIABLE.encode("ascii"), b"set_backend")
SETTERS = frozenset({"os.environ.setdefault", "os.putenv", "os.environ.__setitem__"})
_SWITCHES = frozenset(
    f"{keras}.{module}.set_backend" for keras in ("keras", "tensorflow.keras") for module in ("config", "backend")
)
_METHODS = frozenset(last_part(name) for name in SETTERS | _SWITCHES)
_OTHERS = frozenset({"jax", "torch", "numpy", "openvino", "theano", "cntk", "mxnet", "plaidml.keras.backend"})


def other_backends(names: Names) -> list[tuple[ast.AST, str]]:
    """Return the statements and calls that choose a backend other than TensorFlow, each with the backend."""
    chosen = ((node, constant_or(value, "")) for node, value in _backend_choices(names))
    return [(node, str(backend)) for node, backend in chosen if backend in _OTHERS]


def may_choose_backend(text: str) -> bool:
    """Return True if a file may choose a backend; cheaper than a search."""
    return _VARIABLE in text or "set_backend" in text


def has_other_backend(names: Names) -> bool:
    """Return True if the program of a file chooses a backend of Keras other than TensorFlow.

    The script does so, or a module when it is imported. A module of several scripts belongs to such a program if all
    scripts choose one.
    """
    project = names.project
    if not names.is_in_project:
        return bool(names.once(other_backends))
    if not project.once(_files_choosing_backend):
        return False
    scripts = scripts_importing(project, names.path) or [names.path]
    return all(project.once(_has_other_backend, script) for script in scripts)


def _has_other_backend(project: ModuleIndex, script: str) -> bool:
    choosing = project.once(_files_choosing_backend)
    return script in choosing or any(choosing.get(path) for path in project.with_imports(script))


def _files_choosing_backend(project: ModuleIndex) -> dict[str, bool]:
    """Return the files that choose another backend; True for those that do so when they are imported."""
    by_file: dict[str, bool] = {}
    for path in project.paths:
        module = project.module(path) if any(word in project.raw(path) for word in _WORDS) else None
        chosen = other_backends(module.names) if module else []
        if module and chosen:
            by_file[path] = any(module.names.place(node).scope is module.names.module for node, _ in chosen)
    return by_file


def _backend_choices(names: Names) -> Iterator[tuple[ast.AST, ast.expr]]:
    for statement, where in names.places.items():
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Subscript)
            and _subscript_key(statement.targets[0]) == _VARIABLE
            and names.resolve(statement.targets[0].value, where) == "os.environ"
        ):
            yield statement, statement.value
    for call in names.calls:
        if last_name(call.node.func) not in _METHODS or not call.node.args:
            continue
        name = names.resolve(call.node.func, call.where)
        if name in SETTERS and len(call.node.args) > 1 and boxed_constant(call.node.args[0]) == (_VARIABLE,):
            yield call.node, call.node.args[1]
        elif name in _SWITCHES:
            yield call.node, call.node.args[0]


def _subscript_key(target: ast.Subscript) -> object:
    return constant_or(index_of(target), "")
