"""The imports of Horovod in a script, by statements and by functions that take the name of a module."""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..syntax.expressions import boxed_constant

_BY_NAME = ("importlib.import_module", "importlib.util.find_spec")
_FRAMEWORKS = ("tensorflow", "keras")
_SHARED = ("", "*", "common", "run")  # of all frameworks, as private names are
_ALIAS = re.compile(r"[^,]+")
_LITERAL = re.compile(r"[rRuU]?(?:'''|\"\"\"|'|\")(?=horovod\b)")


class Imported(NamedTuple):
    """A module or another name of Horovod that a script imports.

    Attributes:
        node: the statement, or the string that a function such as import_module gets.
        name: the dotted name, as in ``horovod.tensorflow.rank``.
        start: the text offset of the word horovod.
        binds_horovod: True if the statement binds the name horovod.
    """

    node: ast.stmt | ast.expr
    name: str
    start: int
    binds_horovod: bool = False

    @property
    def is_shared(self) -> bool:
        """True for a name of all frameworks."""
        part = framework_of(self.name)
        return part in _SHARED or part.startswith("_")

    @property
    def is_foreign(self) -> bool:
        """True for a name of another framework."""
        return is_of_other_framework_or_launcher(self.name)


def framework_of(name: str) -> str:
    """Return ``tensorflow`` of ``horovod.tensorflow.rank``; the empty string for ``horovod``."""
    return (name.split(".") + [""])[1]


def is_of_other_framework_or_launcher(name: str) -> bool:
    """Return True if a name of Horovod belongs to another framework, or starts processes."""
    if is_data_service(name):
        return True
    part = framework_of(name)
    return not (part in _FRAMEWORKS or part in _SHARED or part.startswith("_"))


def is_data_service(name: str) -> bool:
    """Return True if a name belongs to Horovod's tf.data service."""
    return f"{name}.".startswith("horovod.tensorflow.data.")


def is_of_other_framework(context: Context, imports: list[Imported]) -> bool:
    """Return True for a file with imports of Horovod for PyTorch or MXNet, and none of TensorFlow."""
    parts = {framework_of(imported.name) for imported in imports}
    if parts.isdisjoint(("torch", "mxnet")) or not parts.isdisjoint(_FRAMEWORKS):
        return False
    names = context.names
    scopes = {where.scope for where in names.places.values()}
    targets = [b.target for scope in scopes for bs in scope.bindings.values() for b in bs if b.kind == "import"]
    modules = targets + [star.module for star in names.stars]
    return {module.partition(".")[0] for module in modules}.isdisjoint((*_FRAMEWORKS, "tf_keras"))


def horovod_imports(context: Context) -> list[Imported]:
    """Return the imports of Horovod in a file, in the order of the file; none if horovod is a module of the project."""
    if "horovod" not in context.source.text:
        return []
    if context.names.project.file_of_import("horovod", context.names.path) is not None:
        return []
    imports = [*_import_statements(context), *_import_calls(context)]
    return sorted(imports, key=lambda imported: imported.start)


def _import_statements(context: Context) -> Iterator[Imported]:
    source = context.source
    for statement in context.names.places:
        if isinstance(statement, ast.ImportFrom) and not statement.level and _is_horovod(statement.module or ""):
            start = source.skip_trivia(source.start(statement) + len("from"))
            for alias in statement.names:
                yield Imported(statement, f"{statement.module}.{alias.name}", start)
        elif isinstance(statement, ast.Import) and any(_is_horovod(alias.name) for alias in statement.names):
            first, end = source.start(statement) + len("import"), source.end(statement)
            for alias, text in zip(statement.names, _ALIAS.finditer(source.text, first, end)):
                if _is_horovod(alias.name):
                    yield Imported(statement, alias.name, source.skip_trivia(text.start()), alias.asname is None)


def _import_calls(context: Context) -> Iterator[Imported]:
    for call, name in context.called_names.items():
        value = boxed_constant(call.args[0]) if name in _BY_NAME and call.args else None
        if value and isinstance(value[0], str) and _is_horovod(value[0]):
            literal = _LITERAL.match(context.source.text, context.source.start(call.args[0]))
            if literal:
                yield Imported(call.args[0], value[0], literal.end())


def _is_horovod(module: str) -> bool:
    return module == "horovod" or module.startswith("horovod.")
