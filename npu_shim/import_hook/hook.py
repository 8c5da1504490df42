"""Give the import system the migrated code of a script's own files.

Everything else about a module is unchanged: its finder, its spec, its source,
its ``__file__``. No bytecode of the project's files is written, so that plain
Python never loads migrated code instead of the original.
"""

from __future__ import annotations

import ast
import os
import runpy
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Sequence

from npu_shim._host.packages import find_spec_after
from npu_shim._tensorflow.types import Function, Structure
from npu_shim.import_hook import autograph
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.import_hook.conversions import Conversions
from npu_shim.import_hook.migrated_code import Migrated


class UnchangedLoader(SourceFileLoader):
    """Load a file of the project without conversion."""

    def set_data(self, path: str, data: Structure, *, _mode: int = 0o666) -> None:
        """Write nothing: the import system would write bytecode here."""


class MigratedLoader(UnchangedLoader):
    """Load the migrated form of a file of the project."""

    def __init__(self, name: str, path: str, migrated: Migrated) -> None:
        super().__init__(name, path)
        self._migrated = migrated

    def get_code(self, fullname: str) -> CodeType:
        """Return the migrated code, with the path and the line numbers of the original."""
        # The parser reports errors and warnings for the text and the lines of the original.
        compile(self.get_data(self.path), self.path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        try:
            return self._migrated.compile_text(self.path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            print(
                f"npu-shim run: {self.path} runs without conversion, because its migrated form does not compile. "
                f"Please report this: {type(error).__name__}: {error}",
                file=sys.stderr,
            )
            return self.source_to_code(self.get_data(self.path), self.path)


class Finder:
    """A module finder that asks the other finders, and replaces the loader of the project's files."""

    def __init__(self, conversions: Conversions, watch_shapes: bool) -> None:
        self.conversions = conversions
        self.watch_shapes = watch_shapes

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module for an import."""
        spec = find_spec_after(self, name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = self.loader_for(spec.loader)
        return spec

    def loader_for(self, plain: SourceFileLoader) -> SourceFileLoader:
        """Return the loader for a file that Python would load with ``plain``."""
        if self.conversions.files.normalized_path(plain.path) is None:
            return plain
        migrated = self.conversions.migrated_file(plain.path)
        return MigratedLoader(plain.name, plain.path, migrated) if migrated else UnchangedLoader(plain.name, plain.path)


def install_finder(conversions: Conversions, watch_shapes: bool) -> Finder:
    """Install the hook as the first finder, for the rest of this process.

    Args:
        conversions: of the project's files.
        watch_shapes: True to report shapes that change from run to run.
    Returns:
        The finder, with which to load the script itself.
    """
    finder = Finder(conversions, watch_shapes)
    sys.meta_path.insert(0, finder)
    _convert_in_runpy(finder)
    after_tensorflow(lambda: autograph.use_migrated_source(conversions.migrated_file))
    if watch_shapes:
        after_tensorflow(_watch_shapes)
    return finder


def _watch_shapes() -> None:
    from npu_shim.data import watch_shapes

    watch_shapes()


def _convert_in_runpy(finder: Finder) -> None:
    """Make ``runpy.run_path`` run the migrated form of the project's files.

    Scripts call it, and so do the child processes of multiprocessing, to import the main script again.
    """
    original: Function = getattr(runpy, "_get_code_from_file")

    def get_code_from_file(*args: str) -> CodeType | tuple[CodeType, str]:
        loader = finder.loader_for(SourceFileLoader("<run_path>", os.fsdecode(args[-1])))
        if not isinstance(loader, MigratedLoader):
            return original(*args)
        code = loader.get_code("<run_path>")
        return code if len(args) == 1 else (code, args[-1])  # before Python 3.13, the arguments are a name and a path

    setattr(runpy, "_get_code_from_file", get_code_from_file)
