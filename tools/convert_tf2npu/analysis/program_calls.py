"""Decide if a call of some kind, or a text, is anywhere in the programs of a file."""

from __future__ import annotations

from typing import Callable, Pattern

from ..project.context import Context
from ..semantics.module_index import ModuleIndex, Names
from .near_frameworks import near_frameworks


def program_has_call(names: Names, has_call: Callable[[Names], bool], may_have: Callable[[bytes], object]) -> bool:
    """Return True if a file, or another file of its programs, has a call of some kind.

    Args:
        names: name resolution in the file. If nothing imports it, all files of the project count.
        has_call: True for the names of a file with such a call, which is one of TensorFlow.
        may_have: something true for the bytes of each file with one.
    """
    if names.once(has_call):
        return True
    project = names.project
    having = project.once(_files_with_call, has_call, may_have)
    importing = project.with_importers({names.path})
    return bool(having) and (len(importing) <= 1 or not importing.isdisjoint(project.with_importers(having)))


def program_matches(context: Context, pattern: Pattern[bytes]) -> bool:
    """Return True if a pattern is in a file, in one that it imports or in one that imports it, directly or not."""
    project, path = context.names.project, context.names.path
    near = project.with_imports(path) | project.with_importers({path})
    return any(pattern.search(raw) for raw in (context.source.raw, *map(project.raw, near)))


def _files_with_call(
    project: ModuleIndex, has_call: Callable[[Names], bool], may_have: Callable[[bytes], object]
) -> frozenset[str]:
    near = sorted(project.once(near_frameworks))  # neighbours beside each other: they are analysed together
    modules = (project.module(path) for path in near if may_have(project.raw(path)))
    return frozenset(module.path for module in modules if module is not None and module.names.once(has_call))
