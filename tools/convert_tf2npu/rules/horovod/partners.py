"""The files of a project that train together. Either all of them are converted or none.

One file calls ``hvd.init()`` and the others depend on it. If one file keeps Horovod, all files that the same script
imports, directly or through others, have to keep it too.
"""

from __future__ import annotations

from typing import NamedTuple

from ...rewrite.npu_imports import taken
from ...semantics.module_index import ModuleIndex, Names
from ...syntax.source import Source
from ...syntax.suppressions import ignored
from ..base import Context
from .plan import Plan, plan


class Obstacle(NamedTuple):
    """The reason why a file keeps Horovod: the file, the line and the reason."""

    path: str
    line: int
    why: str


def obstacle_elsewhere(context: Context, code: str) -> Obstacle | None:
    """Return the obstacle in a file that trains together with this one, or None."""
    names = context.names
    if names.project is None or names.path not in names.project.paths:
        return None
    return names.project.once(_obstacles, code).get(names.path)


def own_obstacle(source: Source, names: Names, made: Plan, code: str) -> Obstacle | None:
    """Return the obstacle in a file itself, or None."""
    if made.obstacles:
        first = min(made.obstacles, key=lambda finding: source.start(finding.node))
        return Obstacle(names.path, source.line_col(source.start(first.node))[0], first.message)
    line = source.line_col(source.start(made.node))[0]
    name = taken(made.uses, names)
    if name:
        return Obstacle(names.path, line, f"this file uses the name {name} for something else")
    if ignored(source, made.node, code):
        return Obstacle(names.path, line, "a comment suppresses it")
    return None


def _obstacles(project: ModuleIndex, code: str) -> dict[str, Obstacle]:
    """Return the obstacle for each file that has to keep Horovod because of another file."""
    own: dict[str, Obstacle | None] = {}
    for path in _with_horovod(project):
        module = project.module(path)
        if module is None:
            own[path] = Obstacle(path, 1, "it cannot be read")
            continue
        made = plan(Context(module.source, module.names, module.types))
        if made is not None:
            own[path] = own_obstacle(module.source, module.names, made, code)
            if path in project.fixed:
                own[path] = own[path] or Obstacle(path, 1, "it is excluded")
    found: dict[str, Obstacle] = {}
    for group in _groups(project, set(own)):
        standing = [(path, own[path]) for path in sorted(group) if own[path] is not None]
        for path in group:
            others = [obstacle for other, obstacle in standing if other != path]
            if others and others[0] is not None:
                found[path] = others[0]
    return found


def _with_horovod(project: ModuleIndex) -> list[str]:
    """Return the files that may use Horovod: those that name it, and those that import such a file."""
    naming = {path for path in project.paths if path.endswith((".py", ".pyw")) and b"horovod" in project.raw(path)}
    users = project.bringing(naming) if naming else frozenset()
    return [path for path in project.paths if path in users and path.endswith((".py", ".pyw"))]


def _groups(project: ModuleIndex, files: set[str]) -> list[set[str]]:
    """Return the sets of files that train together."""
    groups: list[set[str]] = []
    users = project.bringing(files)
    for together in (set(project.reached(path) & files) for path in project.paths if path in users):
        if together:
            touching = [group for group in groups if group & together]
            groups = [group for group in groups if not group & together]
            groups.append(together.union(*touching))
    return groups
