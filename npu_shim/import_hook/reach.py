"""The files of a project that a script may import, found by reading and not by importing."""

from __future__ import annotations

import ast
import os
import warnings
from typing import Iterator, Sequence, Tuple

from npu_shim.import_hook.own import Own

_MOST_BYTES = 2_000_000  # what is longer was written by a program; the migration tool does not read it either
_Import = Tuple[int, str]  # leading dots, dotted name


def reachable(start: Sequence[str], own: Own, path: Sequence[str]) -> list[str]:
    """The own files that are imported from some files, directly or by each other.

    Only what is named by import statements counts, in whatever block they
    stand; so it takes as long as the project is large, not as its folder is.

    Args:
        start: files of the project.
        own: what belongs to the project.
        path: the folders that imports are looked up in (``sys.path``).
    Returns:
        Their paths, ``start`` among them, in the order in which they are found.
    """
    folders = [folder for folder in (os.path.abspath(entry) for entry in path) if _may_hold(folder, own)]
    found = {key: None for key in map(own.key, start) if key}
    waiting = list(found)
    while waiting:
        file = waiting.pop(0)
        for dots, name in _imports(file):
            for candidate in _files(dots, name.split("."), file, folders):
                key = own.key(candidate)
                if key and key not in found:
                    found[key] = None
                    waiting.append(key)
    return list(found)


def located(module: str, path: Sequence[str]) -> list[str]:
    """The files that ``python -m module`` executes: the packages around it first, what starts last.

    Returns:
        Their paths; empty where there is none.
    """
    found = list(_files(0, module.split("."), "", [os.path.abspath(entry) for entry in path]))
    if found and os.path.basename(found[-1]) == "__init__.py":
        found.append(os.path.join(os.path.dirname(found[-1]), "__main__.py"))
    return found


def _may_hold(folder: str, own: Own) -> bool:
    root = os.path.join(own.root, "")
    return os.path.join(os.path.realpath(folder), "").startswith(root) or root.startswith(os.path.join(folder, ""))


def _imports(file: str) -> Iterator[_Import]:
    tree = _parsed(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            yield node.level, base
            for alias in node.names:  # may be a module, too
                yield node.level, f"{base}.{alias.name}".lstrip(".")


def _parsed(file: str) -> ast.Module | None:
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            return None
        with open(file, "rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are given when the file is imported
            return ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # whoever imports it gets the error


def _files(dots: int, parts: list[str], importer: str, folders: list[str]) -> Iterator[str]:
    """The files that importing a name executes: of the module, and of the packages around it."""
    if dots:
        folder = os.path.dirname(importer)
        for _ in range(dots - 1):
            folder = os.path.dirname(folder)
        folders = [folder]
    for folder in folders:
        found = False
        for part in parts:
            folder = os.path.join(folder, part)
            for file in (os.path.join(folder, "__init__.py"), folder + ".py"):
                if os.path.isfile(file):
                    found = True
                    yield file
                    break
            if not os.path.isdir(folder):
                break
        if found:
            return
