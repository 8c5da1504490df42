"""Find the functions, classes and methods that a program may run, from its script on.

A function that the program imports and never names is not among them. Where code may run what no name shows, as by
``importlib.import_module``, the answer is that everything may run.
"""

from __future__ import annotations

import re
from typing import Iterable

from ..project.outlines import ALL, GUARD, MODULE
from ..semantics.module_index import ModuleIndex
from .code_links import Part, is_own, links_of, outline

_DUNDER = re.compile(r"__\w+__")


def reached_code(project: ModuleIndex, path: str, is_library: bool) -> dict[str, set[str]] | None:
    """Return the parts of each file that a script may run; None if it may run all that it imports.

    Args:
        project: the files.
        path: the script.
        is_library: True if the file is no program: others may use each of its parts.
    """
    search = _Search(project)
    search.load(path)
    search.reach(Part(path, name) for name in (project.once(outline, path).units if is_library else (GUARD,)))
    return search.run()


class _Search:
    """A search for the parts that a script may run."""

    def __init__(self, project: ModuleIndex) -> None:
        self._project = project
        self._reached: dict[str, set[str]] = {}
        self._todo: list[Part] = []
        self._attributes: set[str] = set()
        self._passed: set[str] = set()  # modules that are values
        self._waiting: dict[str, list[Part]] = {}  # methods and functions, by the attribute that reaches them

    def run(self) -> dict[str, set[str]] | None:
        """Search until nothing is added, and return the parts that are reached; None for all."""
        while self._todo:
            part = self._todo.pop()
            linked = self._project.once(links_of, *part)
            if linked.is_dynamic:
                return None
            for file in linked.files:
                self.load(file)
            self.reach(linked.parts)
            self.reach(linked.values)
            for value in linked.values:
                self.reach(self._methods(value))
            for module in linked.modules - self._passed:
                self._pass_module(module)
            self._get(linked.attributes)
            if part.name not in (MODULE, GUARD) and "." not in part.name:
                self._reach_methods(part)
        return self._reached

    def load(self, path: str) -> None:
        """Run the top level of a file."""
        if path in self._reached:
            return
        self._reached[path] = set()
        package = self._project.find(".", path)
        if package:
            self.load(package)
        units = self._project.once(outline, path).units.items()
        self.reach(Part(path, n) for n, unit in units if n == MODULE or unit.is_registered and "." not in n)

    def reach(self, parts: Iterable[Part]) -> None:
        """Run parts of files."""
        for part in parts:
            self.load(part.path)
            names = self._reached[part.path]
            if part.name not in names and part.name in self._project.once(outline, part.path).units:
                names.add(part.name)
                self._todo.append(part)

    def _methods(self, owner: Part) -> list[Part]:
        start = owner.name + "."
        return [Part(owner.path, n) for n in self._project.once(outline, owner.path).units if n.startswith(start)]

    def _reach_methods(self, owner: Part) -> None:
        """Run the methods of a class that its bases or others may call."""
        methods = self._methods(owner)
        are_called = bool(methods) and not self._project.once(is_own, *owner)
        units = self._project.once(outline, owner.path).units
        for method in methods:
            word = method.name.rpartition(".")[2]
            if are_called or units[method.name].is_registered or _DUNDER.fullmatch(word):
                self.reach([method])
            else:
                self._reach_by_attribute(method, word)

    def _reach_by_attribute(self, part: Part, word: str) -> None:
        if word in self._attributes or ALL in self._attributes:
            self.reach([part])
        else:
            self._waiting.setdefault(word, []).append(part)

    def _pass_module(self, path: str) -> None:
        """Run what is got from a module that is a value."""
        self._passed.add(path)
        for name in self._project.once(outline, path).units:
            if name not in (MODULE, GUARD) and "." not in name:
                self._reach_by_attribute(Part(path, name), name)

    def _get(self, attributes: frozenset[str]) -> None:
        new = attributes - self._attributes
        self._attributes |= new
        for word in list(self._waiting) if ALL in new else new:
            self.reach(self._waiting.pop(word, ()))
