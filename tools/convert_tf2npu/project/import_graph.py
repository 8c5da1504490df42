"""The import graph: the files of a project and the files that each of them imports."""

from __future__ import annotations

import os
import re
import sys
from array import array
from typing import Callable, Collection, Iterable, NamedTuple, Sequence

from .import_groups import ImportGroups
from .import_statements import Imports, dotted_name, import_statements_in, imports_of, text_with_joined_lines
from .module_cache import LRU
from .source_files import SourceFiles

_ATTRIBUTE = re.compile(r"\.(\w+)")
_MOST_REACHED = 16  # answers that are kept


class Concerned(NamedTuple):
    """The files that can get TensorFlow from other files.

    Attributes:
        reaching: the files whose imports lead to a file that imports TensorFlow.
        handed: the files that such files import, and that may receive objects from them.
    """

    reaching: frozenset[str]
    handed: frozenset[str]


class ImportGraph:
    """The imports of all files. Files are numbers in it, because a large project has many edges.

    Args:
        files: the files.
    """

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        self._paths = tuple(files.paths)
        self._numbers = {path: number for number, path in enumerate(self._paths)}
        self._imported: list[Sequence[int]] = []  # the files that each file imports itself
        self._beside: list[Sequence[int]] = []  # further files that its imports may be in
        self._roots: list[int] = []  # the files that import TensorFlow from outside the project
        self._read_imports()
        self._importing = _reversed_edges(self._imported)
        self._concerned: Concerned | None = None
        self._taken: dict[str, frozenset[str]] | None = None
        self._groups: ImportGroups | None = None
        self._reached: LRU[int, frozenset[str]] = LRU(_MOST_REACHED)
        self._bringing: LRU[frozenset[str], frozenset[str]] = LRU(_MOST_REACHED)

    def direct_importers(self, path: str) -> tuple[str, ...]:
        """Return the files that import a file themselves."""
        number = self._numbers.get(path)
        numbers = self._importing[number] if number is not None else ()
        return tuple(sorted(self._paths[other] for other in numbers))

    def with_imports(self, path: str) -> frozenset[str]:
        """Return the files that a file imports, directly or not, and this file; none for a file outside the project."""
        if path not in self._numbers:
            return frozenset()
        group = self.groups.group_of_file[self._numbers[path]]
        paths = self._reached.get(group)
        if paths is None:
            paths = self.groups.with_imports(group)
            self._reached.put(group, paths, 1)
        return paths

    def with_importers(self, paths: Collection[str]) -> frozenset[str]:
        """Return the files that import one of some files, directly or not, and these files."""
        key = frozenset(paths)
        bringers = self._bringing.get(key)
        if bringers is None:
            numbers = [self._numbers[path] for path in key if path in self._numbers]
            bringers = key | self.groups.with_importers(self.groups.group_of_file[number] for number in numbers)
            self._bringing.put(key, bringers, 1)
        return bringers

    @property
    def groups(self) -> ImportGroups:
        """The groups of files that import each other, found when they are first asked for."""
        if self._groups is None:
            self._groups = ImportGroups(self._paths, self._imported, self._importing)
        return self._groups

    def names_imported_from(self, path: str) -> frozenset[str]:
        """Return the names that other files may import from a file; ``*`` for all."""
        if self._taken is None:
            self._taken = self._names_taken_by_importers()
        return self._taken.get(path, frozenset())

    @property
    def concerned(self) -> Concerned:
        """The files that can contain something for a rule.

        It contains more files than Python would import: a package reaches all files in it, and a file that imports by
        function calls reaches all modules that its strings name.
        """
        if self._concerned is None:
            self._concerned = self._find_concerned()
        return self._concerned

    def _read_imports(self) -> None:
        places: dict[str, dict[str, int | None]] = {}  # of modules, as the files of a folder import them
        for number, path in enumerate(self._paths):
            folder = os.path.dirname(path)
            if folder not in places:
                places = {folder: {}}  # the files of a folder come one after the other
            imports = imports_of(self._files.raw(path), path)
            imported, beside = self._numbers_of_imported_and_neighbouring_files(imports, folder, places[folder])
            self._imported.append(_sorted_array(imported - {number}))
            self._beside.append(_sorted_array(beside - imported))
            if imports.of_frameworks:
                self._roots.append(number)

    def _numbers_of_imported_and_neighbouring_files(
        self, imports: Imports, folder: str, places: dict[str, int | None]
    ) -> tuple[set[int | None], set[int | None]]:
        def number_of_module(module: str) -> int | None:
            if module not in places:
                places[module] = self._numbers.get(self._files.finder.find_for_folder(module, folder) or "")
            return places[module]

        modules = {module for module, _ in imports.names}
        imported = {number_of_module(module) for module in modules}
        imported.update(number_of_module(dotted_name(module, name)) for module, name in imports.names)
        return imported, {
            number_of_module(part) for module in modules | imports.others for part in _packages_around(module)
        }

    def _names_taken_by_importers(self) -> dict[str, frozenset[str]]:
        taken: dict[str, set[str]] = {}
        finder = self._files.finder
        for path in self._paths:
            text = text_with_joined_lines(self._files.raw(path), path)
            imports = frozenset(import_statements_in(text))
            attributes = frozenset(map(sys.intern, _ATTRIBUTE.findall(text))) if imports else frozenset()
            for module, name in imports:
                whole = finder.find_for_file(dotted_name(module, name), path)
                number_of_module = whole or finder.find_for_file(module, path)
                if number_of_module is not None and number_of_module != path:
                    taken.setdefault(number_of_module, set()).update(attributes if whole else {name})
        return {path: frozenset(names) for path, names in taken.items()}

    def _find_concerned(self) -> Concerned:
        inside = self._files_by_package()
        package_of = {number: package for package, numbers in inside.items() for number in numbers}
        backwards = _reversed_edges(self._beside)
        reaching = _reachable(
            self._roots,
            lambda number: (
                self._importing[number],
                backwards[number],
                [package_of[number]] if number in package_of else [],
            ),
        )
        handed = _reachable(
            reaching, lambda number: (self._imported[number], self._beside[number], inside.get(number, []))
        )
        return Concerned(
            frozenset(self._paths[number] for number in reaching), frozenset(self._paths[number] for number in handed)
        )

    def _files_by_package(self) -> dict[int, list[int]]:
        """Return the files in each package."""
        by_package: dict[int, list[int]] = {}
        for number, path in enumerate(self._paths):
            folder, name = os.path.split(path)
            package = os.path.join(os.path.dirname(folder) if name == "__init__.py" else folder, "__init__.py")
            if package in self._numbers:
                by_package.setdefault(self._numbers[package], []).append(number)
        return by_package


def _sorted_array(numbers: Iterable[int | None]) -> Sequence[int]:
    return array("I", sorted(number for number in numbers if number is not None))


def _reversed_edges(edges: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """Return edges in the other direction."""
    turned: list[Sequence[int]] = [array("I") for _ in edges]
    for number, others in enumerate(edges):
        for other in others:
            turned[other].append(number)  # type: ignore[attr-defined]
    return turned


def _reachable(numbers: Iterable[int], edges: Callable[[int], Iterable[Iterable[int]]]) -> set[int]:
    """Return some numbers and all that edges lead to from them."""
    closed = set(numbers)
    todo = list(closed)
    while todo:
        for others in edges(todo.pop()):
            new = [other for other in others if other not in closed]
            closed.update(new)
            todo += new
    return closed


def _packages_around(module: str) -> list[str]:
    """Return the packages around a module, and the module."""
    words = module.split(".")
    return [".".join(words[:count]) for count in range(1, len(words) + 1)]
