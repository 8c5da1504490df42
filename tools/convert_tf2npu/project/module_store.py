"""The modules of a run: files after parsing and analysis, kept in memory as long as they fit.

A file is parsed when it is converted, or when another file asks for a definition in it. The answers to such questions
are kept, so that few files are parsed twice and a further file takes a few kilobytes of memory.
"""

from __future__ import annotations

import weakref
from typing import Callable

from ..files.extensions import NOTEBOOK
from ..semantics.module_index import Module, Names
from ..syntax.notebook import Notebook
from ..syntax.source import SourceError
from .free_memory import LEAST_NODES
from .module_cache import LRU
from .source_files import MOST_BYTES, SourceFiles


class ModuleStore:
    """The modules of a run by path.

    Args:
        files: the files.
        analyse: parses and analyses a file, which may raise SourceError.

    Attributes:
        in_progress: the modules that are being analysed. Modules that import each other ask for these again.
    """

    def __init__(self, files: SourceFiles, analyse: Callable[[bytes, str], Module]) -> None:
        self._files = files
        self._analyse = analyse
        self._modules: LRU[str, Module] = LRU(LEAST_NODES)
        self._unreadable: set[str] = set()
        self.in_progress: set[str] = set()
        self._dropped: list[weakref.ReferenceType[Names]] = []  # and not settled yet

    def __contains__(self, path: str) -> bool:
        return path in self._modules

    def limit_nodes(self, most: int) -> None:
        """Keep so many nodes of trees in memory."""
        self._modules.most = most

    def is_unreadable(self, path: str) -> bool:
        """Return True if a file could not be read."""
        return path in self._unreadable

    def understand(self, raw: bytes, path: str) -> Module:
        """Return the module of a file's bytes.

        Args:
            raw: the bytes.
            path: its absolute path; empty for code without a file.

        Raises:
            SourceError: they are not Python 3.
        """
        known = self._modules.get(path) if path else None
        if known is not None and known.source.raw == raw:
            return known
        self.in_progress.add(path)
        try:
            module = self._analyse(raw, path)
        finally:
            self.in_progress.discard(path)
        if path:
            self._add_to_cache(module)
        return module

    def module(self, path: str) -> Module | None:
        """Return the module of a file of the project; None if it cannot be read, or is being analysed."""
        known = self._modules.get(path)
        if known is not None:
            return known
        if path in self._unreadable or path in self.in_progress:
            return None
        try:
            raw = self._files.read(path)
            if path.endswith(NOTEBOOK):
                raw = Notebook(raw).script
            if len(raw) > MOST_BYTES:
                raise SourceError("it is too large")
            return self.understand(raw, path)
        except (OSError, SourceError, RecursionError):
            self._unreadable.add(path)  # reported when the file itself is converted
            return None

    def free_dropped_modules(self) -> None:
        """Make dropped modules forget what they know of each other, which would keep them in memory.

        Call it between two files, when no question is being answered.
        """
        for reference in self._dropped:
            names = reference()
            if names is not None:
                names.forget_answers()
                names.types.forget_answers()
        self._dropped.clear()

    def _add_to_cache(self, module: Module) -> None:
        for old in self._modules.put(module.path, module, len(module.names.parents)):
            self._dropped.append(weakref.ref(old.names))
