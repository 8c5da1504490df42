"""Which files of a project import which, by the text of their import statements."""
from __future__ import annotations

import functools
import re
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Set, Tuple

from .notebook import SUFFIX, Notebook
from .project import Project
from .source import SourceError

_IMPORT = re.compile(r'^[ \t]*import[ \t]+([^\n#;]+)', re.MULTILINE)
_FROM = re.compile(r'^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)', re.MULTILINE)
_ATTRIBUTE = re.compile(r'\.(\w+)')
_COMMENT = re.compile(r'#[^\n]*')


@functools.lru_cache(maxsize=1)
def reached(project: Project) -> Dict[str, FrozenSet[str]]:
    """For each file the files that importing it brings in, itself among them."""
    edges = _edges(project)
    return {path: _from(path, edges) for path in edges}


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
    for path, (imports, attributes) in _texts(project).items():
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


class _Text(NamedTuple):
    """What a file imports, as modules and names of them, and all words that it has behind a dot."""
    imports: FrozenSet[Tuple[str, str]]
    attributes: FrozenSet[str]


@functools.lru_cache(maxsize=1)
def _texts(project: Project) -> Dict[str, _Text]:
    """One pass over all files."""
    found: Dict[str, _Text] = {}
    for path in project.paths:
        text = _text(project, path)
        imports = frozenset(_imports(text))
        found[path] = _Text(imports, frozenset(_ATTRIBUTE.findall(text)) if imports else frozenset())
    return found


def _from(path: str, edges: Dict[str, Set[str]]) -> FrozenSet[str]:
    found: Set[str] = {path}
    todo: List[str] = [path]
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
    return raw.decode('utf-8', 'replace').replace('\\\r\n', ' ').replace('\\\n', ' ')


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
