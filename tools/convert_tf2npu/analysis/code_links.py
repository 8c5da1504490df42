"""Find what a part of a file names: functions and classes of the project, methods by their names, modules."""

from __future__ import annotations

from typing import Iterator, NamedTuple

from ..project.import_statements import dotted_name
from ..project.module_cache import LRU
from ..project.outlines import (
    ALL,
    CALL,
    Import,
    Outline,
    ReferencedNames,
    blank_out_strings,
    may_be_dynamic,
    names_in_unit,
    outline_of,
    text_of_source,
)
from ..semantics.module_index import ModuleIndex

_MOST_CODE = 24_000_000  # characters of plain code in memory
_RUNNER = "app.run"  # without an argument it runs main
# Bases that call no method of a class.
_PLAIN_BASES = frozenset(
    "object ABC abc.ABC ABCMeta abc.ABCMeta Enum enum.Enum NamedTuple Exception ValueError".split()
)


class Part(NamedTuple):
    """A part of a file, see :class:`Unit`."""

    path: str
    name: str


class Links(NamedTuple):
    """The names in a part of a file, and where they lead.

    Attributes:
        parts: functions and classes that it may call.
        values: classes that other code may get from it, and call their methods.
        attributes: names of attributes, of objects that are not known; a star for any name.
        modules: modules of which other code may get any function.
        files: the files whose top level runs when the part does.
        is_dynamic: it may run what no name shows.
    """

    parts: frozenset[Part]
    values: frozenset[Part]
    attributes: frozenset[str]
    modules: frozenset[str]
    files: frozenset[str]
    is_dynamic: bool


def outline_of_file(project: ModuleIndex, path: str) -> Outline:
    """Return the outline of a file of a project."""
    return outline_of(_text_of_file(project, path), _text_without_strings(project, path))


def may_be_dynamic_file(project: ModuleIndex, path: str) -> bool:
    """Return True if code of a file may run what no name shows."""
    return may_be_dynamic(_text_of_file(project, path))


def names_in_part(project: ModuleIndex, part: Part) -> ReferencedNames:
    """Return the names in the code of a part of a file."""
    unit = project.once(outline_of_file, part.path).units[part.name]
    return names_in_unit(_text_without_strings(project, part.path), unit, lambda: _text_of_file(project, part.path))


def _text_of_file(project: ModuleIndex, path: str) -> str:
    return text_of_source(project.raw(path), path)


def _text_without_strings(project: ModuleIndex, path: str) -> str:
    known = project.once(_code_cache)
    code = known.get(path)
    if code is None:
        code = blank_out_strings(_text_of_file(project, path))
        known.put(path, code, len(code))
    return code


def _code_cache(_: ModuleIndex) -> LRU[str, str]:
    return LRU(_MOST_CODE)


def links_of_part(project: ModuleIndex, path: str, name: str) -> Links:
    """Return what a part of a file names."""
    unit = project.once(outline_of_file, path).units[name]
    code = names_in_part(project, Part(path, name))
    if code.is_dynamic:
        nothing: frozenset[Part] = frozenset()
        return Links(nothing, nothing, frozenset(), frozenset(), frozenset(), True)
    linked = _Linked(project, path)
    for word in code.words:
        is_called = word.endswith(CALL)
        linked.add_mention(word[: -len(CALL)] if is_called else word, not is_called)
    for base in unit.bases:
        linked.add_mention(base, False)
    files = frozenset(
        file for statement in unit.imports for file in _modules_loaded_by_import(project, path, statement)
    )
    return Links(
        frozenset(linked.parts),
        frozenset(linked.values),
        frozenset(linked.attributes),
        frozenset(linked.modules),
        files,
        "__subclasses__" in linked.attributes,
    )


def has_only_project_bases(project: ModuleIndex, path: str, name: str) -> bool:
    """Return True if no base of a class is from outside the project. Then only the project calls its methods."""
    return _has_only_project_bases(project, Part(path, name), frozenset())


def _has_only_project_bases(project: ModuleIndex, part: Part, seen: frozenset[Part]) -> bool:
    if part in seen:
        return False
    for base in project.once(outline_of_file, part.path).units[part.name].bases:
        if base not in _PLAIN_BASES:
            home = _find_defining_module(project, part.path, base.split("."), set())
            if (
                not home
                or not home[1]
                or not _has_only_project_bases(project, Part(home[0], home[1][0]), seen | {part})
            ):
                return False
    return True


class _Linked:
    def __init__(self, project: ModuleIndex, path: str) -> None:
        self.parts: set[Part] = set()
        self.values: set[Part] = set()
        self.attributes: set[str] = set()
        self.modules: set[str] = set()
        self._project = project
        self._path = path
        self._units = project.once(outline_of_file, path).units
        self._imported = project.once(_imports_by_local_name, path)

    def add_mention(self, word: str, is_value: bool) -> None:
        """Add what a dotted name may name.

        Args:
            word: the name.
            is_value: True if it is not called.
        """
        root, _, rest = word.partition(".")
        units = self._units
        if word.endswith(_RUNNER) and "main" in units:
            self.parts.add(Part(self._path, "main"))
        if word == ALL:
            self.parts.update(Part(self._path, name) for name in units)
        elif not root:
            self.attributes.update(rest.split("."))
        elif root in self._imported:
            for statement in self._imported[root]:
                self._add_imported_mention(statement, rest, is_value)
        else:
            if root in units or ALL in self._imported:  # as a rule not: most names are of variables
                home = _find_defining_module(self._project, self._path, [root], set())
                if home and home[1]:
                    self._add(Part(home[0], home[1][0]), is_value and not rest)
            if rest:
                self.attributes.update(rest.split("."))

    def _add_imported_mention(self, imported: Import, rest: str, is_value: bool) -> None:
        is_plain = not imported.name and imported.local == imported.module.partition(".")[0]  # import a.b binds a
        dotted = imported.local if is_plain else dotted_name(imported.module, imported.name)
        whole = f"{dotted}.{rest}" if rest else dotted
        is_any = whole.endswith("." + ALL)
        origin = self._project.file_of_import(whole[: -len(ALL) - 1] if is_any else whole, self._path)
        if origin is None:
            return  # of another package
        module, names = _find_defining_module(self._project, *origin, set()) or ("", origin[1])
        if not names:
            self.modules.add(module)
        elif names[0] == "__dict__":
            self.modules.add(module or origin[0])
            is_any = True
        elif module:
            self._add(Part(module, names[0]), is_value and len(names) == 1)
        self.attributes.update(names[1:])
        if is_any:
            self.attributes.add(ALL)

    def _add(self, part: Part, is_value: bool) -> None:
        (self.values if is_value else self.parts).add(part)


def _find_defining_module(
    project: ModuleIndex, path: str, names: list[str], seen: set[Part]
) -> tuple[str, list[str]] | None:
    """Return the module that has a name which another module exports, and the name in it.

    Args:
        project: the files.
        path: the module that exports it.
        names: the parts of the dotted name; none for the module itself.
        seen: the names that are being followed.
    """
    if not names or names[0] in project.once(outline_of_file, path).units:
        return path, names
    part = Part(path, names[0])
    if part in seen:
        return None
    seen.add(part)
    imported = project.once(_imports_by_local_name, path)
    for statement in imported.get(names[0], ()):
        dotted = dotted_name(statement.module, statement.name) if statement.name else statement.module
        origin = project.file_of_import(".".join([dotted, *names[1:]]), path)
        home = _find_defining_module(project, *origin, seen) if origin else None
        if home:
            return home
    for star in imported.get(ALL, ()):
        module = project.file_of_module(star.module, path)
        home = _find_defining_module(project, module, names, seen) if module else None
        if home:
            return home
    return None


def _imports_by_local_name(project: ModuleIndex, path: str) -> dict[str, list[Import]]:
    """Return what the statements of a file import, by the names that they bind."""
    by_name: dict[str, list[Import]] = {}
    for unit in project.once(outline_of_file, path).units.values():
        for statement in unit.imports:
            by_name.setdefault(statement.local, []).append(statement)
    return by_name


def _modules_loaded_by_import(project: ModuleIndex, path: str, imported: Import) -> Iterator[str]:
    """Yield the modules that a statement imports, and the packages around them."""
    dots = len(imported.module) - len(imported.module.lstrip("."))
    parts = imported.module[dots:].split(".")
    modules = ["." * dots + ".".join(parts[: end + 1]) for end in range(len(parts))]
    modules += [dotted_name(imported.module, imported.name)] if imported.name not in ("", ALL) else []
    for module in modules:
        file = project.file_of_module(module, path)
        if file:
            yield file
