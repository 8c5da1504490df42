"""Which files of a project import which, by the text of their import statements."""
from __future__ import annotations

import functools
import os
import re
from typing import Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Set, Tuple

from .notebook import SUFFIX, Notebook
from .project import Project, names_roots
from .source import SourceError

_IMPORT = re.compile(r'^[ \t]*import[ \t]+([^\n#;]+)', re.MULTILINE)
_FROM = re.compile(r'^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)', re.MULTILINE)
_ATTRIBUTE = re.compile(r'\.(\w+)')
# What imports without an import statement that starts a line.
_BY_OTHER_MEANS = (b'import_module', b'__import__', b'LazyLoader', b'sys.modules')
_INSIDE_LINE = re.compile(rb'[:;][ \t]*(?:from|import)[ \t]')
_COMMENT = re.compile(r'#[^\n]*')


@functools.lru_cache(maxsize=1)
def reached(project: Project) -> Dict[str, FrozenSet[str]]:
    """For each file the files that importing it brings in, itself among them."""
    edges = _edges(project)
    return {path: _from([path], edges) for path in edges}


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
    for path, (imports, _) in _texts(project).items():
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
    for path, (imports, _) in _texts(project).items():
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

    More is taken for reached than Python would import: a package reaches all that is in it, and what imports by other
    means than import statements at the start of a line reaches everything.
    """
    edges = _edges_with_packages(project)
    backwards: Dict[str, Set[str]] = {}
    for path, imported in edges.items():
        for other in imported:
            backwards.setdefault(other, set()).add(path)
    reaching = _from([path for path, text in _texts(project).items() if text.is_source], backwards)
    return Concerned(reaching, _from(reaching, edges))


def _edges_with_packages(project: Project) -> Dict[str, Set[str]]:
    """For each file those that what it imports may stand in, each package on the way with all that is in it."""
    found: Dict[str, Set[str]] = {path: set(others) for path, others in _edges(project).items()}
    for path, (imports, _) in _texts(project).items():
        for module, _ in imports:
            words = module.split('.')
            places = {project.find('.'.join(words[:count]), path) for count in range(1, len(words))}
            found[path].update(place for place in places if place is not None)
    for path in project.paths:
        folder, name = os.path.split(path)
        package = os.path.join(os.path.dirname(folder) if name == '__init__.py' else folder, '__init__.py')
        if package in found:
            found[package].add(path)
    return found


class _Text(NamedTuple):
    """What a file imports, as modules and names of them, and whether it may have TensorFlow by itself: it names it, or
    imports by means that are not followed here."""
    imports: FrozenSet[Tuple[str, str]]
    is_source: bool


@functools.lru_cache(maxsize=1)
def _texts(project: Project) -> Dict[str, _Text]:
    """One pass over all files."""
    found: Dict[str, _Text] = {}
    for path in project.paths:
        raw = project.raw(path)
        found[path] = _Text(frozenset(_imports(_text(project, path))), names_roots(raw) or any(
            word in raw for word in _BY_OTHER_MEANS) or bool(_INSIDE_LINE.search(raw)))
    return found


def _from(paths: Iterable[str], edges: Dict[str, Set[str]]) -> FrozenSet[str]:
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
    if path.endswith(SUFFIX):
        try:
            raw = Notebook(raw).script
        except SourceError:
            return ''  # said when its own turn comes
    return raw.decode('utf-8-sig', 'replace').replace('\\\r\n', ' ').replace('\\\n', ' ')


def _imports(text: str) -> Iterator[Tuple[str, str]]:
    """The modules that a text imports, and the names that it imports from them."""
    for match in _IMPORT.finditer(text):
        for name in _names(match.group(1)):
            yield name, ''
    for match in _FROM.finditer(text):
        for name in _names(match.group(2)) or ['']:
            yield match.group(1), name


def _joined(module: str, name: str) -> str:
    return module + '.' + name if name and not module.endswith('.') else module + name


def _names(listed: str) -> List[str]:
    parts = [part.split() for part in _COMMENT.sub('', listed).strip('() \t').split(',')]
    return [words[0] for words in parts if words and re.match(r'[A-Za-z_*]', words[0])]
