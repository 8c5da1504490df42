"""Recognise scripts that install or document a package, and train nothing with it."""

from __future__ import annotations

import ast
import re

from ..semantics.model import Where
from ..semantics.module_index import ModuleIndex, Names
from ..syntax.expressions import last_name
from .tensorflow_evidence import evidence_of

_INSTALLERS = frozenset({"setuptools.setup", "distutils.core.setup", "numpy.distutils.core.setup", "skbuild.setup"})
# Modules that read the signatures and docstrings of other modules.
_READERS = frozenset({"inspect", "keras_autodoc", "mkdocs", "pdoc", "pydoc", "sphinx", "tensorflow_docs"})
_WORDS = (b"setup(", *(reader.encode("ascii") for reader in sorted(_READERS)))  # which takes less time to find
_SETUP_OR_READER = re.compile(rb"\bsetup\(|" + b"|".join(_WORDS[1:]))


def describes_package(names: Names) -> bool:
    """Return True if a script installs a package, or reads its docstrings and calls nothing of the project."""
    return (_installs_package(names) or _reads_docstrings(names)) and not names.once(evidence_of).trains


def _installs_package(names: Names) -> bool:
    return any(
        last_name(call.node.func) == "setup" and names.resolve(call.node.func, call.where) in _INSTALLERS
        for call in names.calls
    )


def _reads_docstrings(names: Names) -> bool:
    imported = {b.target.partition(".")[0] for bs in names.module.bindings.values() for b in bs if b.kind == "import"}
    if _READERS.isdisjoint(imported) or names.stars:
        return False
    called = [(part, c.where) for c in names.calls for part in (c.node.func, *c.node.args, *_keyword_values(c.node))]
    derived = [(base, where) for node, where in names.classes for base in node.bases]
    decorating = [
        (decorator, function.where)
        for function in names.functions
        for decorator in getattr(function.node, "decorator_list", ())
    ]
    return not any(_is_imported_from_project(names, node, where) for node, where in called + derived + decorating)


def file_describes_package(project: ModuleIndex, path: str) -> bool:
    """Return :func:`describes_package` for a file of a project."""
    raw = project.raw(path)
    is_near = any(word in raw for word in _WORDS) and _SETUP_OR_READER.search(raw)
    module = project.module(path) if is_near else None
    return module is not None and describes_package(module.names)


def _keyword_values(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords]


def _is_imported_from_project(names: Names, node: ast.expr, where: Where) -> bool:
    """Return True for a name that is imported from the project, but for modules and names such as ``__version__``."""
    if last_name(node).startswith("__"):
        return False
    attributes = ""
    root = node
    while isinstance(root, ast.Attribute):
        attributes = f".{root.attr}{attributes}"
        root = root.value
    bindings = names.bindings_of_name(root.id, where) or [] if isinstance(root, ast.Name) else []
    imported = [
        names.project.file_of_import(binding.target + attributes, names.path)
        for binding in bindings
        if binding.kind == "import"
    ]
    return any(origin is not None and origin[1] for origin in imported)
