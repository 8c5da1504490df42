"""Gives the import system the migrated code of a script's own files.

Everything else about a module stays what it is: its finder, its spec, its
source, its ``__file__``. No bytecode of an own file is written, so that plain
Python never takes migrated code for the original, and no file is left behind.
"""

from __future__ import annotations

import ast
import os
import runpy
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Sequence

from npu_shim.import_hook import after_import
from npu_shim.import_hook.conversions import Conversions
from npu_shim.import_hook.lines import Migrated


class OwnLoader(SourceFileLoader):
    """Loads an own file as it is."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Writes nothing: this is how bytecode would be kept."""


class MigratedLoader(OwnLoader):
    """Loads the migrated form of an own file."""

    def __init__(self, name: str, path: str, migrated: Migrated) -> None:
        super().__init__(name, path)
        self._migrated = migrated

    def get_code(self, fullname: str) -> CodeType:
        """The migrated code, under the path and with the line numbers of the original."""
        # What the original's text deserves is said for it, with its own lines: errors and warnings of the parser.
        compile(self.get_data(self.path), self.path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        try:
            return self._migrated.code(self.path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            print(
                f"npu-shim run: {self.path} runs as it is, because its migrated form cannot be compiled; please "
                f"report that: {type(error).__name__}: {error}",
                file=sys.stderr,
            )
            return self.source_to_code(self.get_data(self.path), self.path)


class Finder:
    """Finds what the other finders find, and has own files loaded by the loaders above."""

    def __init__(self, conversions: Conversions, watch_shapes: bool) -> None:
        self.conversions = conversions
        self.watch_shapes = watch_shapes

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module, as an import asks for it."""
        after = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
        for finder in after:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if type(spec.loader) is SourceFileLoader:
                    spec.loader = self.loader(spec.loader)
                    after_import.prepare(spec, self.conversions.migrated, self.watch_shapes)
                return spec
        return None

    def loader(self, plain: SourceFileLoader) -> SourceFileLoader:
        """The loader for a file that Python would load with ``plain``."""
        if self.conversions.own.key(plain.path) is None:
            return plain
        migrated = self.conversions.migrated(plain.path)
        return MigratedLoader(plain.name, plain.path, migrated) if migrated else OwnLoader(plain.name, plain.path)


def install(conversions: Conversions, watch_shapes: bool) -> Finder:
    """Puts the hook in front of the import system, for the rest of this process.

    Args:
        conversions: of the script's own files.
        watch_shapes: whether TensorFlow is to tell shapes that change from run to run.
    Returns:
        The finder, for what is not imported: the script itself.
    """
    finder = Finder(conversions, watch_shapes)
    sys.meta_path.insert(0, finder)
    _convert_in_runpy(finder)
    return finder


def _convert_in_runpy(finder: Finder) -> None:
    """Makes ``runpy.run_path`` run own files migrated: scripts call it, and so do the child processes of
    multiprocessing, to import the main script once more."""
    original = getattr(runpy, "_get_code_from_file")

    def get_code_from_file(*args: Any) -> Any:
        loader = finder.loader(SourceFileLoader("<run_path>", os.fsdecode(args[-1])))
        if not isinstance(loader, MigratedLoader):
            return original(*args)
        code = loader.get_code("<run_path>")
        return code if len(args) == 1 else (code, args[-1])  # before Python 3.13: of a name and a path

    setattr(runpy, "_get_code_from_file", get_code_from_file)
