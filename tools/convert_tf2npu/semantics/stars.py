"""Star imports: the names that they bring."""

from __future__ import annotations

import builtins
from typing import Iterable

from ..tf_api.canonical_names import canonical_name
from ..tf_api.name_tables import KERAS_NAMES
from ..tf_api.npu_init_exports import STAR
from .model import Binding, Scope, Star
from .module_index import ModuleIndex
from .resolved_name import ResolvedName

_BUILTINS = frozenset(dir(builtins))
_FRAMEWORKS = frozenset({"tensorflow", "tensorflow_estimator", "keras", "tf_keras"})


def name_from_stars(name: str, stars: Iterable[str], project: ModuleIndex, path: str) -> ResolvedName | None:
    """Return what the star imports of a module bind a name to, or None.

    Args:
        name: the name.
        stars: the modules from which everything is imported.
        project: the index of the project.
        path: the file of the importing module.
    """
    if name in _BUILTINS:
        return None
    for star in stars:
        if canonical_name(star) == "npu_shim.npu_init" and name in STAR:
            return ResolvedName("tensorflow" if name == "tf" else "npu_shim.npu_init." + name)
    known: set[ResolvedName | None] = set()
    of_one_keras: ResolvedName | None = None  # of several modules of Keras with a name, the last one
    for star in stars:
        module = project.file_of_module(star, path)
        if module:
            name_there = starred_name(project, module, name)
            if name_there:
                known.add(name_there)
        elif star.split(".")[0] in _FRAMEWORKS:
            brings = keras_star_exports(star, name)
            if brings:
                of_one_keras = ResolvedName(f"{star}.{name}")
            elif brings is None:
                known.add(ResolvedName(f"{star}.{name}"))
        elif canonical_name(star) != "npu_shim.npu_init":
            known.add(None)  # a module that is not known here
    if of_one_keras is not None:
        known.add(of_one_keras)
    return known.pop() if len(known) == 1 else None


def keras_star_exports(module: str, name: str) -> bool | None:
    """Return True if a star import of a module of Keras brings a name; None if the module's names are not known."""
    parts = canonical_name(module).split(".")
    if parts[:2] != ["tensorflow", "keras"]:
        return None
    inner = ".".join(parts[2:])
    names = KERAS_NAMES.get("layers" if inner.startswith("layers.") else inner)  # layers.core and others of Keras 2
    return None if names is None else name in names


def names_with_later_stars(
    name: ResolvedName,
    word: str,
    bindings: list[Binding],
    module: Scope,
    stars: list[Star],
    project: ModuleIndex,
    path: str,
) -> set[ResolvedName | None]:
    """Return what a name of a module can refer to if star imports of the project after its bindings bind it too.

    Args:
        name: what the bindings of the module itself make it.
        word: the name as it is written.
        bindings: its bindings.
        module: the module's scope.
        stars: the star imports of the module.
        project: the index of the project.
        path: the file of the module.
    """
    candidates: set[ResolvedName | None] = {name}
    if any(b.where.scope is not module for b in bindings):
        return candidates
    last = max(getattr(b.where.statement, "lineno", 0) for b in bindings)
    for star in stars:
        source = project.file_of_module(star.module, path) if star.node.lineno > last else None
        if source and star_binds(project, source, word):
            candidates.add(starred_name(project, source, word))
    return candidates


def starred_name(project: ModuleIndex, path: str, name: str) -> ResolvedName | None:
    """Return what a star import of a module binds a name to; None if it does not bind it."""
    module = project.module(path)
    return (
        project.resolve_attribute(ResolvedName("", path), name) if module and module.names.star_exports(name) else None
    )


def star_binds(project: ModuleIndex, path: str, name: str) -> bool:
    """Return True if a star import of a module certainly binds a name."""
    module = project.module(path)
    return module is not None and name in module.names.module.bindings and module.names.star_exports(name)
