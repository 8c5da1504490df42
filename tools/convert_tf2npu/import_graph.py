"""Which files of a project import which, by the text of their import statements."""
from __future__ import annotations

import functools
import os
import re
import sys
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Set, Tuple

from .endings import NOTEBOOK
from .notebook import Notebook
from .project import Project, names_roots
from .source import SourceError

_IMPORT = re.compile(r'[ \t]*import[ \t]+([^\n#;]+)')
_FROM = re.compile(r'[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)')
_ATTRIBUTE = re.compile(r'\.(\w+)')
# What imports without an import statement that starts a line.
_BY_OTHER_MEANS = ('import_module', '__import__', 'LazyLoader', 'sys.modules')
_INSIDE_LINE = re.compile(r'[:;](?=[ \t]*(?:from|import)[ \t])')
_QUOTED = re.compile(r'["\']([.\w]+)["\']')
_COMMENT = re.compile(r'#[^\n]*')


@functools.lru_cache(maxsize=16)
def reached(project: Project, path: str) -> FrozenSet[str]:
    """The files that importing a file brings in, itself among them; none of a file outside the project."""
    edges = _edges(project)
    return _from([path], edges) if path in edges else frozenset()


def bringing(project: Project, paths: Iterable[str]) -> FrozenSet[str]:
    """The files that bring in one of some files, these among them."""
    return _from(paths, importers(project))


@functools.lru_cache(maxsize=1)
def importers(project: Project) -> Dict[str, Tuple[str, ...]]:
    """For each file the files that import it themselves."""
    found: Dict[str, List[str]] = {}
    for path, imported in _edges(project).items():
        for other in imported:
            found.setdefault(other, []).append(path)
    return {path: tuple(sorted(others)) for path, others in found.items()}


@functools.lru_cache(maxsize=1)
def taken(project: Project) -> Dict[str, FrozenSet[str]]:
    """For each file the names that others may take from it; ``*`` for all."""
    found: Dict[str, Set[str]] = {}
    for path, (imports, *_) in _texts(project).items():
        attributes = frozenset(_ATTRIBUTE.findall(_text(project, path))) if imports else frozenset()
        for module, name in imports:
            whole = project.find(_joined(module, name), path)
            place = whole or project.find(module, path)
            if place is not None and place != path:
                found.setdefault(place, set()).update(attributes if whole else {name})
    return {path: frozenset(names) for path, names in found.items()}


@functools.lru_cache(maxsize=1)
def _edges(project: Project) -> Dict[str, Set[str]]:
    """For each file the files that it imports itself."""
    found: Dict[str, Set[str]] = {}
    for path, (imports, *_) in _texts(project).items():
        dotted = {module for module, _ in imports} | {_joined(module, name) for module, name in imports}
        places = {project.find(name, path) for name in dotted}
        found[path] = {place for place in places if place is not None and place != path}
    return found


class Concerned(NamedTuple):
    """The files that can have TensorFlow from others: those whose imports lead to one that names it, and those that are
    imported by such files, which may hand them objects."""
    reaching: FrozenSet[str]
    handed: FrozenSet[str]


@functools.lru_cache(maxsize=1)
def concerned(project: Project) -> Concerned:
    """The files of a project that can have something for a rule.

    More is taken for reached than Python would import: a package reaches all that is in it, and a file that imports by
    functions all that its texts name.
    """
    edges = _edges_with_packages(project)
    backwards: Dict[str, Set[str]] = {}
    for path, imported in edges.items():
        for other in imported:
            backwards.setdefault(other, set()).add(path)
    reaching = _from([path for path, text in _texts(project).items() if text.names_roots], backwards)
    return Concerned(reaching, _from(reaching, edges))


def _edges_with_packages(project: Project) -> Dict[str, Set[str]]:
    """For each file those that what it imports may stand in, each package on the way with all that is in it."""
    found: Dict[str, Set[str]] = {path: set(others) for path, others in _edges(project).items()}
    for path, text in _texts(project).items():
        for module in {module for module, _ in text.imports} | text.others:
            words = module.split('.')
            places = {project.find('.'.join(words[:count]), path) for count in range(1, len(words) + 1)}
            found[path].update(place for place in places if place is not None)
    for path in project.paths:
        folder, name = os.path.split(path)
        package = os.path.join(os.path.dirname(folder) if name == '__init__.py' else folder, '__init__.py')
        if package in found:
            found[package].add(path)
    return found


class _Text(NamedTuple):
    """What a file imports at the start of lines, as modules and names of them, what it may import by other means, and
    whether it names TensorFlow."""
    imports: FrozenSet[Tuple[str, str]]
    others: FrozenSet[str]
    names_roots: bool


@functools.lru_cache(maxsize=1)
def _texts(project: Project) -> Dict[str, _Text]:
    """One pass over all files."""
    found: Dict[str, _Text] = {}
    for path in project.paths:
        text = _text(project, path)
        found[path] = _Text(frozenset(_imports(text)), frozenset(_by_other_means(text)), names_roots(project.raw(path)))
    return found


def _by_other_means(text: str) -> Iterator[str]:
    """What may be imported behind a colon or semicolon, or by a function that is given a name."""
    for start, end in _lines_with_imports(text):
        for match in _INSIDE_LINE.finditer(text, start, end):
            for module, name in _import_at(text, match.end()):
                yield from (module, _joined(module, name))
    if any(word in text for word in _BY_OTHER_MEANS):
        yield from _QUOTED.findall(text)


def _from(paths: Iterable[str], edges: Mapping[str, Iterable[str]]) -> FrozenSet[str]:
    found: Set[str] = set(paths)
    todo: List[str] = list(found)
    while todo:
        for other in edges.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return frozenset(found)


def _text(project: Project, path: str) -> str:
    raw = project.raw(path)
    if path.endswith(NOTEBOOK):
        try:
            raw = Notebook(raw).script
        except SourceError:
            return ''  # said when its own turn comes
    return raw.decode('utf-8-sig', 'replace').replace('\\\r\n', ' ').replace('\\\n', ' ')


def _imports(text: str) -> Iterator[Tuple[str, str]]:
    """The modules that a text imports, and the names that it imports from them."""
    for start, _ in _lines_with_imports(text):
        yield from _import_at(text, start)


def _lines_with_imports(text: str) -> Iterator[Tuple[int, int]]:
    """The start and the end of each line with the word import; few have it, and to look at each line takes long."""
    found = text.find('import')
    while found >= 0:
        end = text.find('\n', found) % (len(text) + 1)  # the text's end for the last
        yield text.rfind('\n', 0, found) + 1, end
        found = text.find('import', end)


def _import_at(text: str, start: int) -> Iterator[Tuple[str, str]]:
    """What an import statement brings that starts at a place; nothing where there is none."""
    plain, parts = _IMPORT.match(text, start), _FROM.match(text, start)
    if plain:
        for name in _names(plain.group(1)):
            yield sys.intern(name), ''
    elif parts:
        for name in _names(parts.group(2)) or ['']:
            yield sys.intern(parts.group(1)), sys.intern(name)  # files of a project import much the same


def _joined(module: str, name: str) -> str:
    return module + '.' + name if name and not module.endswith('.') else module + name


def _names(listed: str) -> List[str]:
    parts = [part.split() for part in _COMMENT.sub('', listed).strip('() \t').split(',')]
    return [words[0] for words in parts if words and re.match(r'[A-Za-z_*]', words[0])]
