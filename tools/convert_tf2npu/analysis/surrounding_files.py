"""The files around a file of a program: those that it imports or that import it, and what else their programs load."""

from __future__ import annotations

from typing import Callable

from ..project.context import Context
from ..semantics.module_index import Names


def names_of_surrounding_files(context: Context, concerns: Callable[[bytes], bool] | None = None) -> list[Names]:
    """Return the names of a file and of the files around it.

    Args:
        context: the file.
        concerns: returns False for the contents of files that are left out; None to leave none out.
    """
    names, facts = context.names, context.program_facts
    project = names.project
    importers = project.with_importers([names.path])
    others = {*importers, *project.with_imports(names.path)}
    if facts is not None:
        loaded = [path for path in importers if facts.facts_of_file(path, project.raw(path)) is not None]
        others.update(*map(project.with_imports, loaded))
    wanted = [path for path in sorted(others - {names.path}) if concerns is None or concerns(project.raw(path))]
    modules = map(project.module, wanted)
    return [names, *(module.names for module in modules if module is not None)]
