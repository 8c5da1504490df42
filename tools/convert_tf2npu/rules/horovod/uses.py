"""Find the uses and imports of Horovod in a script."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ...semantics.model import Where
from ...semantics.module_index import Names
from ...semantics.resolved_name import ResolvedName
from ...tf_api.canonical_names import canonical

_OTHER = "another horovod"


class Use(NamedTuple):
    """An expression that refers to Horovod.

    ``name`` is the canonical name, as ``horovod.rank``; ``spelled`` the name as imported, as
    ``horovod.tensorflow.keras.rank``; ``call`` its call, if any; ``where`` its place.
    """

    node: ast.expr
    name: str
    spelled: str
    call: ast.Call | None
    where: Where

    @property
    def short(self) -> str:
        """The name as scripts write it."""
        return self.name.replace("horovod", "hvd", 1)

    @property
    def is_keras(self) -> bool:
        """Return True if the use is of Horovod's Keras interface, whose collectives run immediately."""
        return ".keras" in self.spelled


def is_horovod(name: str | None) -> bool:
    """Return True if a canonical name is in Horovod's TensorFlow interface."""
    return name is not None and (name == "horovod" or name.startswith("horovod."))


def uses(names: Names) -> list[Use]:
    """Return each use of Horovod in a file, as the longest dotted name."""
    found: list[Use] = []
    for node in ast.walk(names.tree):
        parent = names.parents.get(node)
        if (
            not isinstance(node, (ast.Name, ast.Attribute))
            or isinstance(parent, ast.Attribute)
            or not isinstance(node.ctx, ast.Load)
            or _is_local(names, node)
        ):
            continue
        statement = next((a for a in names.ancestors(node) if a in names.places), None)
        if statement is None:
            continue
        where = names.places[statement]
        spelled = names.spelled(node, where)
        name = canonical(spelled) if spelled else None
        if spelled and name and is_horovod(name):
            call = parent if isinstance(parent, ast.Call) and parent.func is node else None
            found.append(Use(node, name, spelled, call, where))
    return found


def _is_local(names: Names, node: ast.expr) -> bool:
    """Return True if a lambda or comprehension binds the first name of an expression."""
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return True
    for parent in names.ancestors(node):
        if isinstance(parent, ast.stmt):
            return False
        if isinstance(parent, ast.Lambda) and root.id in {a.arg for a in parent.args.args}:
            return True
        for generator in getattr(parent, "generators", ()):
            if root.id in {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}:
                return True
    return False


class Imports(NamedTuple):
    """The imports of Horovod: the statements with the positions of its names in each, and star imports of it."""

    names: dict[ast.stmt, set[int]]
    stars: list[ast.stmt]


def imports(names: Names) -> Imports:
    """Return the imports of Horovod in a file, including those through modules of the project."""
    found = Imports({}, [])
    others = _uses_others(names)
    for node in ast.walk(names.tree):
        for index, imported in enumerate(_imported(node)):
            assert isinstance(node, ast.stmt)
            name = _followed(names, imported)
            if imported.endswith(".*"):
                if is_horovod(canonical(imported[:-2])):
                    found.stars.append(node)
            elif is_horovod(name) or imported == "horovod" and not others:
                found.names.setdefault(node, set()).add(index)
    return found


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            yield module + ("" if module.endswith(".") else ".") + alias.name


def _followed(names: Names, imported: str) -> str | None:
    name = names.project.follow(imported, names.path) if names.project else ResolvedName(imported)
    return canonical(name.dotted) if name and not name.path else None


def _uses_others(names: Names) -> bool:
    """Return True if a file imports Horovod for another framework."""
    return any(
        canonical(imported).startswith(_OTHER + ".") for node in ast.walk(names.tree) for imported in _imported(node)
    )
