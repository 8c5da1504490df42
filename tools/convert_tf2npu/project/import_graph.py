"""Which files of a project import which, by the text of their import statements."""

from __future__ import annotations

import functools
import os
import re
import sys
from array import array
from typing import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    NamedTuple,
    Sequence,
    Tuple,
)

from ..engine.parts import in_parts
from ..engine.shares import equal, size_of
from ..files.extensions import NOTEBOOK
from ..syntax.notebook import Notebook
from ..syntax.source import SourceError
from .project import Project, names_roots

_IMPORT = re.compile(r"[ \t]*import[ \t]+([^\n#;]+)")
_FROM = re.compile(r"[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)")
_ATTRIBUTE = re.compile(r"\.(\w+)")
# What imports without an import statement that starts a line.
_BY_OTHER_MEANS = ("import_module", "__import__", "LazyLoader", "sys.modules")
_INSIDE_LINE = re.compile(r"[:;](?=[ \t]*(?:from|import)[ \t])")
_QUOTED = re.compile(r'["\']([.\w]+)["\']')
_COMMENT = re.compile(r"#[^\n]*")
_NAME = re.compile(r"[A-Za-z_*]")
_WORTH_A_PROCESS = 100  # files
_Row = Tuple[bytes, bytes, bool]  # of a file: what it imports, what may stand in besides, whether it brings TensorFlow


class _Graph:
    """The imports of all files, which are numbers here, because a large project has many of them.

    ``paths`` are the files, ``numbers`` their places there. ``imported`` are the files that each imports itself,
    ``beside`` those that what it imports may stand in besides, ``importing`` those that import it; ``bringing`` are the
    files that bring TensorFlow in from outside.

    Args:
        project: the files.
        jobs: processes that there may be.
    """

    def __init__(self, project: Project, jobs: int = 1) -> None:
        self.project = project
        self.paths = tuple(project.paths)
        self.numbers = {path: number for number, path in enumerate(self.paths)}
        jobs = min(jobs, 1 + len(self.paths) // _WORTH_A_PROCESS)
        shares = equal([size_of(path) for path in self.paths], jobs) if jobs > 1 else [range(len(self.paths))]
        found = [each for part in in_parts(self._read, [(share,) for share in shares]) for each in part]
        self.imported: list[Sequence[int]] = [array("I", imported) for imported, _, _ in found]
        self.beside: list[Sequence[int]] = [array("I", beside) for _, beside, _ in found]
        self.bringing = [number for number, (_, _, brings) in enumerate(found) if brings]
        self.importing = _turned(self.imported)

    def _read(self, numbers: range) -> list[_Row]:
        found: list[_Row] = []
        places: dict[str, dict[str, int | None]] = {}  # of modules, as files of a folder import them
        for number in numbers:
            path = self.paths[number]
            folder = os.path.dirname(path)
            if folder not in places:
                places = {folder: {}}  # the files of a folder come one after the other
            imports = _read(self.project, path)
            imported, beside = self._found(imports, lambda m: self.project.files.search(m, folder), places[folder])
            found.append((_packed(imported - {number}), _packed(beside - imported), imports.of_roots))
        return found

    def _found(
        self, imports: _Imports, search: Callable[[str], str | None], places: dict[str, int | None]
    ) -> tuple[set[int | None], set[int | None]]:
        def place(module: str) -> int | None:
            if module not in places:
                places[module] = self.numbers.get(search(module) or "")
            return places[module]

        modules = {module for module, _ in imports.names}
        imported = {place(module) for module in modules}
        imported.update(place(_joined(module, name)) for module, name in imports.names)
        return imported, {place(part) for module in modules | imports.others for part in _beginnings(module)}

    def inside(self) -> dict[int, list[int]]:
        """For each package the files that are in it."""
        found: dict[int, list[int]] = {}
        for number, path in enumerate(self.paths):
            folder, name = os.path.split(path)
            package = os.path.join(os.path.dirname(folder) if name == "__init__.py" else folder, "__init__.py")
            if package in self.numbers:
                found.setdefault(self.numbers[package], []).append(number)
        return found

    def closure(self, paths: Iterable[str], edges: Sequence[Sequence[int]]) -> frozenset[str]:
        """Some files with all that edges lead to from them."""
        paths = set(paths)
        known = [self.numbers[path] for path in paths if path in self.numbers]
        return frozenset(paths.union(self.paths[number] for number in _closed(known, lambda number: (edges[number],))))


_known: list[_Graph] = []  # of the last project


class Importers(Mapping[str, Tuple[str, ...]]):
    """For each file the files that import it themselves.

    Args:
        graph: the imports of all files.
    """

    def __init__(self, graph: _Graph) -> None:
        self._graph = graph

    def __getitem__(self, path: str) -> tuple[str, ...]:
        found = self._graph.importing[self._graph.numbers[path]]
        if not found:
            raise KeyError(path)
        return tuple(sorted(self._graph.paths[number] for number in found))

    def __iter__(self) -> Iterator[str]:
        return (path for path, found in zip(self._graph.paths, self._graph.importing) if found)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@functools.lru_cache(maxsize=16)
def reached(project: Project, path: str) -> frozenset[str]:
    """The files that importing a file brings in, itself among them; none of a file outside the project."""
    graph = _graph(project)
    return graph.closure([path], graph.imported) if path in graph.numbers else frozenset()


def bringing(project: Project, paths: Iterable[str]) -> frozenset[str]:
    """The files that bring in one of some files, these among them."""
    graph = _graph(project)
    return graph.closure(paths, graph.importing)


def importers(project: Project) -> Importers:
    """For each file that is imported the files that import it themselves."""
    return Importers(_graph(project))


@functools.lru_cache(maxsize=1)
def taken(project: Project) -> dict[str, frozenset[str]]:
    """For each file the names that others may take from it; ``*`` for all."""
    found: dict[str, set[str]] = {}
    for path in project.paths:
        text = _text(project, path)
        imports = frozenset(_imports(text))
        attributes = frozenset(map(sys.intern, _ATTRIBUTE.findall(text))) if imports else frozenset()
        for module, name in imports:
            whole = project.files.find(_joined(module, name), path)
            place = whole or project.files.find(module, path)
            if place is not None and place != path:
                found.setdefault(place, set()).update(attributes if whole else {name})
    return {path: frozenset(names) for path, names in found.items()}


class Concerned(NamedTuple):
    """The files that can have TensorFlow from others: those whose imports lead to one that imports it, and those that are
    imported by such files, which may hand them objects."""

    reaching: frozenset[str]
    handed: frozenset[str]


@functools.lru_cache(maxsize=1)
def concerned(project: Project) -> Concerned:
    """The files of a project that can have something for a rule.

    More is taken for reached than Python would import: a package reaches all that is in it, and a file that imports by
    functions all that its texts name.
    """
    graph = _graph(project)
    inside = graph.inside()
    package_of = {number: package for package, numbers in inside.items() for number in numbers}
    backwards = _turned(graph.beside)
    reaching = _closed(
        graph.bringing,
        lambda number: (
            graph.importing[number],
            backwards[number],
            [package_of[number]] if number in package_of else [],
        ),
    )
    handed = _closed(reaching, lambda number: (graph.imported[number], graph.beside[number], inside.get(number, [])))
    return Concerned(
        frozenset(graph.paths[number] for number in reaching), frozenset(graph.paths[number] for number in handed)
    )


def read_imports(project: Project, jobs: int) -> None:
    """Read the imports of all files now, by several processes where that pays off, instead of when they are asked for."""
    _known[:] = [_Graph(project, jobs)]
    concerned(project)


def _graph(project: Project) -> _Graph:
    if not _known or _known[0].project is not project:
        _known[:] = [_Graph(project)]
    return _known[0]


def _packed(numbers: Iterable[int | None]) -> bytes:
    return array("I", sorted(number for number in numbers if number is not None)).tobytes()


def _turned(edges: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """Edges the other way round."""
    found: list[Sequence[int]] = [array("I") for _ in edges]
    for number, others in enumerate(edges):
        for other in others:
            found[other].append(number)  # type: ignore[attr-defined]
    return found


def _closed(numbers: Iterable[int], edges: Callable[[int], Iterable[Iterable[int]]]) -> set[int]:
    """Some numbers with all that edges lead to from them."""
    found = set(numbers)
    todo = list(found)
    while todo:
        for others in edges(todo.pop()):
            new = [other for other in others if other not in found]
            found.update(new)
            todo += new
    return found


class _Imports(NamedTuple):
    """What a file imports at the start of lines, as modules and names of them, what it may import by other means, and
    whether TensorFlow may be among that: a file may also have its name in a text or a comment, from which none gets it."""

    names: frozenset[tuple[str, str]]
    others: frozenset[str]
    of_roots: bool


def _read(project: Project, path: str) -> _Imports:
    text = _text(project, path)
    names: set[tuple[str, str]] = set()
    others: set[str] = set()
    lines = list(_lines_with_imports(text))
    for start, end in lines:
        names.update(_import_at(text, start))
        for match in _INSIDE_LINE.finditer(text, start, end):
            for module, name in _import_at(text, match.end()):
                others.update((module, _joined(module, name)))
    by_other_means = any(word in text for word in _BY_OTHER_MEANS)
    if by_other_means:
        others.update(_QUOTED.findall(text))
    of_roots = names_roots(project.raw(path)) and (
        by_other_means or any(names_roots(text[start:end].encode("utf-8", "replace")) for start, end in lines)
    )
    return _Imports(frozenset(names), frozenset(others), of_roots)


def _beginnings(module: str) -> Iterator[str]:
    """The packages on the way to a module, and it."""
    words = module.split(".")
    return (".".join(words[:count]) for count in range(1, len(words) + 1))


def _text(project: Project, path: str) -> str:
    raw = project.raw(path)
    if path.endswith(NOTEBOOK):
        try:
            raw = Notebook(raw).script
        except SourceError:
            return ""  # said when its own turn comes
    text = raw.decode("utf-8-sig", "replace")
    if "\r" in text:  # which is seen at once
        text = text.replace("\\\r\n", " ")
    return text.replace("\\\n", " ")


def _imports(text: str) -> Iterator[tuple[str, str]]:
    """The modules that a text imports, and the names that it imports from them."""
    for start, _ in _lines_with_imports(text):
        yield from _import_at(text, start)


def _lines_with_imports(text: str) -> Iterator[tuple[int, int]]:
    """The start and the end of each line with the word import; few have it, and to look at each line takes long."""
    found = text.find("import")
    while found >= 0:
        end = text.find("\n", found) % (len(text) + 1)  # the text's end for the last
        yield text.rfind("\n", 0, found) + 1, end
        found = text.find("import", end)


def _import_at(text: str, start: int) -> Iterator[tuple[str, str]]:
    """What an import statement brings that starts at a place; nothing where there is none."""
    parts = _FROM.match(text, start)
    if parts:
        for name in _names(parts.group(2)) or [""]:
            yield sys.intern(parts.group(1)), sys.intern(name)  # files of a project import much the same
        return
    plain = _IMPORT.match(text, start)
    if plain:
        for name in _names(plain.group(1)):
            yield sys.intern(name), ""


def _joined(module: str, name: str) -> str:
    return module + "." + name if name and not module.endswith(".") else module + name


def _names(listed: str) -> list[str]:
    if "#" in listed:
        listed = _COMMENT.sub("", listed)
    parts = [part.split(None, 1) for part in listed.strip("() \t").split(",")]
    return [words[0] for words in parts if words and _NAME.match(words[0])]
