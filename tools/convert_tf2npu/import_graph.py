"""Which files of a project import which, by the text of their import statements."""
from __future__ import annotations

import functools
import re
from typing import Dict, FrozenSet, Iterator, List, Set, Tuple

from .project import Project

_IMPORT = re.compile(r'^[ \t]*import[ \t]+([^\n#;]+)', re.MULTILINE)
_FROM = re.compile(r'^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)', re.MULTILINE)
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
def _edges(project: Project) -> Dict[str, Set[str]]:
    """For each file the files that it imports itself; one pass over all of them."""
    return {path: _imported(project, path) for path in project.paths}


def _from(path: str, edges: Dict[str, Set[str]]) -> FrozenSet[str]:
    found: Set[str] = {path}
    todo: List[str] = [path]
    while todo:
        for other in edges.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return frozenset(found)


def _imported(project: Project, path: str) -> Set[str]:
    """The files of the project that a file imports itself."""
    text = project.raw(path).decode('utf-8', 'replace').replace('\\\r\n', ' ').replace('\\\n', ' ')
    found = set()
    for module in _modules(text):
        place = project.find(module, path)
        if place is not None and place != path:
            found.add(place)
    return found


def _modules(text: str) -> Iterator[str]:
    """The dotted names that a text may import as modules."""
    for match in _IMPORT.finditer(text):
        for name in _names(match.group(1)):
            yield name
    for match in _FROM.finditer(text):
        module = match.group(1)
        yield module
        for name in _names(match.group(2)):
            yield module + ('' if module.endswith('.') else '.') + name


def _names(listed: str) -> Iterator[str]:
    for part in _COMMENT.sub('', listed).strip('() \t').split(','):
        words: Tuple[str, ...] = tuple(part.split())
        if words and re.match(r'[A-Za-z_]', words[0]):
            yield words[0]
