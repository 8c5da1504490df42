"""Find the functions, classes and methods that a program may run, from its script on.

A function that the program imports and never names is not among them. Where code may run what no name shows, as by
``importlib.import_module``, the answer is that everything may run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..project.outlines import ALL, GUARD, MODULE
from ..semantics.module_index import ModuleIndex
from .code_links import Part, has_only_project_bases, links_of_part, may_be_dynamic_file, outline_of_file

_DUNDER = re.compile(r"__\w+__")


def reached_code(project: ModuleIndex, path: str, is_library: bool) -> frozenset[Part] | None:
    """Return the parts of files that a script may run; None if it may run all that it imports.

    Args:
        project: the files.
        path: the script.
        is_library: True if the file is no program: others may use each of its parts.
    """
    units = project.once(outline_of_file, path).units
    search = _Search(project)
    search.add_reached_parts(
        frozenset(Part(path, name) for name in (MODULE, *(units if is_library else {GUARD} & units.keys())))
    )
    return search.run()


class _Step(NamedTuple):
    """The consequences of running a part of a file.

    Attributes:
        parts: the parts that run, too.
        by_attribute: methods that run if an attribute of their name is got anywhere.
        attributes: the names of attributes that the part gets; a star for any name.
        modules: modules of which other code may get any function.
        is_dynamic: it may run what no name shows.
    """

    parts: frozenset[Part]
    by_attribute: dict[str, frozenset[Part]]
    attributes: frozenset[str]
    modules: frozenset[str]
    is_dynamic: bool


class _Search:
    """A search for the parts that a script may run."""

    def __init__(self, project: ModuleIndex) -> None:
        self._project = project
        self._reached: set[Part] = set()
        # Code that may run anything ends the search, and the top level of files leads there: they come first.
        self._todo: tuple[list[Part], list[Part], list[Part]] = ([], [], [])
        self._attributes: set[str] = set()
        self._passed: set[str] = set()  # modules that are values
        self._waiting: dict[str, frozenset[Part]] = {}  # methods and functions, by the attribute that reaches them

    def run(self) -> frozenset[Part] | None:
        """Search until nothing is added, and return the parts that are reached; None for all."""
        dynamic, modules, others = self._todo
        while dynamic or modules or others:
            step = self._project.once(_consequences_of_running, (dynamic or modules or others).pop())
            if step.is_dynamic:
                return None
            if not step.parts <= self._reached:
                self.add_reached_parts(step.parts)
            self._run_when_attribute_is_read(step.by_attribute)
            for module in step.modules:
                if module not in self._passed:
                    self._passed.add(module)
                    self._run_when_attribute_is_read(self._project.once(_functions_by_name, module))
            if not step.attributes <= self._attributes:
                self._note_attributes_read(step.attributes)
        return frozenset(self._reached)

    def add_reached_parts(self, parts: frozenset[Part]) -> None:
        """Run parts of files."""
        dynamic, modules, others = self._todo
        for part in parts - self._reached:
            self._reached.add(part)
            if self._project.once(may_be_dynamic_file, part.path):
                dynamic.append(part)
            else:
                (others if part.name else modules).append(part)

    def _run_when_attribute_is_read(self, by_attribute: dict[str, frozenset[Part]]) -> None:
        """Run parts when an attribute of their name is got."""
        for word, parts in by_attribute.items():
            if word in self._attributes or ALL in self._attributes:
                self.add_reached_parts(parts)
            else:
                self._waiting[word] = self._waiting.get(word, frozenset()) | parts

    def _note_attributes_read(self, attributes: frozenset[str]) -> None:
        self._attributes |= attributes
        for word in list(self._waiting) if ALL in attributes else attributes & self._waiting.keys():
            self.add_reached_parts(self._waiting.pop(word))


def _consequences_of_running(project: ModuleIndex, part: Part) -> _Step:
    """Return the consequences of running a part; the top level of its file runs first."""
    path, name = part
    units = project.once(outline_of_file, path).units
    parts, by_attribute = {Part(path, MODULE)}, {}
    if name == MODULE:
        package = project.file_of_module(".", path)
        parts.update([Part(package, MODULE)] if package else [])
        parts.update(Part(path, n) for n, unit in units.items() if unit.is_registered and "." not in n)
    if name not in units:
        return _Step(frozenset(parts), {}, frozenset(), frozenset(), False)
    linked = project.once(links_of_part, path, name)
    parts.update(Part(file, MODULE) for file in linked.files)
    for other in linked.parts | linked.values:
        is_known = other.name in project.once(outline_of_file, other.path).units
        parts.add(other if is_known else Part(other.path, MODULE))
    for value in linked.values:
        parts.update(_methods_of_class(project, value))
    if name not in (MODULE, GUARD) and "." not in name:
        methods = _methods_of_class(project, part)
        are_called = bool(methods) and not project.once(has_only_project_bases, path, name)
        for method in methods:
            word = method.name.rpartition(".")[2]
            if are_called or units[method.name].is_registered or _DUNDER.fullmatch(word):
                parts.add(method)
            else:
                by_attribute[word] = frozenset([method])
    return _Step(frozenset(parts), by_attribute, linked.attributes, linked.modules, linked.is_dynamic)


def _methods_of_class(project: ModuleIndex, owner: Part) -> list[Part]:
    start = owner.name + "."
    return [Part(owner.path, n) for n in project.once(outline_of_file, owner.path).units if n.startswith(start)]


def _functions_by_name(project: ModuleIndex, path: str) -> dict[str, frozenset[Part]]:
    """Return the functions and classes of a module, by name."""
    return {
        name: frozenset([Part(path, name)])
        for name in project.once(outline_of_file, path).units
        if name not in (MODULE, GUARD) and "." not in name
    }
