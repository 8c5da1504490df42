"""The environment variables that a script sets before it imports TensorFlow, read from its statements.

The answer is a prediction, with which a process imports TensorFlow for several ranks. ``preloaded`` checks it when the
script comes to the import.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Iterator, Sequence

from npu_shim.import_hook.preloaded import READ_LATER
from npu_shim.import_hook.reachable import files_of_import, read_source

_PACKAGES = ("tensorflow", "keras", "tf_keras", "npu_shim", "npu_bridge", "npu_device", "horovod", "hccl", "tf_slim")
_ENVIRONMENT = ("os.environ", "environ")
_CHANGES = ("setdefault", "update", "pop", "clear", "popitem", "__setitem__")


@dataclass
class Before:
    """The statements of a script before the import of TensorFlow.

    Attributes:
        imports_tensorflow: True if there is such an import, at any place.
        variables: the environment variables that it sets before; those of setdefault() are in ``defaults``.
        problem: why these variables are unknown: the place of the statement that sets them; None if they are known.
    """

    imports_tensorflow: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    problem: str | None = None

    def with_script_variables(self, environ: dict[str, str]) -> dict[str, str]:
        """Return environment variables with those that the script sets."""
        return {**self.defaults, **environ, **self.variables}


def read_before_tensorflow(files: Sequence[str], path: Sequence[str]) -> Before:
    """Read a script.

    Args:
        files: the script, or the files that the start of a module runs, in this order.
        path: folders of the script's own modules, which are read as well.
    """
    reading = _Reading(path)
    for file in files:
        if reading.read_file(file):
            break
    return reading.before


class _Reading:
    def __init__(self, path: Sequence[str]) -> None:
        self.before = Before()
        self._path = path
        self._seen: set[str] = set()

    def read_file(self, file: str) -> bool:
        """Read a file. Return True if it imports TensorFlow when it is imported; what follows is of no interest."""
        if file in self._seen:
            return False
        self._seen.add(file)
        tree = parse_file(file)
        for statement in _statements_in_order(tree.body if tree else []):
            for module in imported_names(statement):
                if module.partition(".")[0] in _PACKAGES or module.startswith("tensorflow"):
                    self.before.imports_tensorflow = True
                    return True
                if any(self.read_file(path) for path in self._files_of_module(module, file)):
                    return True
            self._note_variables(statement, file)
        for node in ast.walk(tree) if tree else ():  # imports inside functions, which run later
            if any(module.startswith(_PACKAGES) for module in imported_names(node)):
                self.before.imports_tensorflow = True
        return False

    def _files_of_module(self, module: str, importer: str) -> Iterator[str]:
        """Return the files of a module of the script's own folders: of the packages around it, and its own."""
        name = module.lstrip(".")
        parts = name.split(".") if name else []
        return files_of_import(len(module) - len(name), parts, importer, list(self._path))

    def _note_variables(self, statement: ast.AST, file: str) -> None:
        """Note the environment variables that a statement sets."""
        for name, value, is_default in _environment_changes(statement):
            if name is not None and name.startswith(READ_LATER):
                continue
            if name is None or value is None:
                self.before.problem = self.before.problem or f"{file}:{getattr(statement, 'lineno', 0)}"
            else:
                (self.before.defaults if is_default else self.before.variables).setdefault(name, value)
                if not is_default:
                    self.before.variables[name] = value


def _statements_in_order(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, in the order of the text."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        parts = [getattr(statement, name, []) for name in ("body", "handlers", "orelse", "finalbody")]
        if not any(parts):
            yield statement
        for part in parts:
            yield from _statements_in_order([inner for item in part for inner in getattr(item, "body", [item])])


def imported_names(node: ast.AST) -> Iterator[str]:
    """Yield the modules that an import statement may import, with the dots of a relative import."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
    elif isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        yield base
        for alias in node.names:
            yield base + ("" if base.endswith(".") or not base else ".") + alias.name


def _environment_changes(statement: ast.AST) -> Iterator[tuple[str | None, str | None, bool]]:
    """Yield name, value and "is a default" of the environment variables that a statement changes; None for unknown."""
    targets: list[ast.expr] = []
    value: ast.expr | None = None
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    elif isinstance(statement, ast.Delete):
        targets = statement.targets
    for target in targets:
        if isinstance(target, ast.Subscript) and _dotted_name(target.value) in _ENVIRONMENT:
            yield _literal_text(_subscript_index(target)), _literal_text(value), False
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if _dotted_name(node.func.value) in _ENVIRONMENT and node.func.attr in _CHANGES:
            is_default = node.func.attr == "setdefault" and len(node.args) == 2
            yield (
                (_literal_text(node.args[0]), _literal_text(node.args[1]), True) if is_default else (None, None, False)
            )
        elif _dotted_name(node.func) in ("os.putenv", "os.unsetenv"):
            yield None, None, False


def _dotted_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted_name(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _subscript_index(target: ast.Subscript) -> ast.AST:
    index: ast.AST = target.slice
    return getattr(index, "value") if type(index).__name__ == "Index" else index  # before Python 3.9


def _literal_text(node: ast.AST | None) -> str | None:
    """Return the value of a literal string, None for anything else."""
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, str) else None


def parse_file(file: str) -> ast.Module | None:
    """Return the tree of a file; None if it is not Python. See read_source()."""
    try:
        return ast.parse(read_source(file))
    except (SyntaxError, ValueError, RecursionError):
        return None  # the script itself raises the error
