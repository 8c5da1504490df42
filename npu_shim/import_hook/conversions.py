"""Conversion of a script's own files: each is migrated once, in memory, by the tool's rules."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable, List, Sequence, Tuple

from npu_shim._host import whole_file
from npu_shim.import_hook.migrated_code import Migrated
from npu_shim.import_hook.project_files import ProjectFiles
from npu_shim.import_hook.reachable import reachable_files

if TYPE_CHECKING:
    from convert_tf2npu.api import Configuration, Edit, FileResult

Results = List[Tuple[str, "FileResult"]]  # paths, and the tool's results for the files

Edits = Callable[[bytes, str, "FileResult"], "Sequence[Edit]"]  # of a file: its bytes, path and result in, edits out


def edits_of_rules(raw: bytes, path: str, result: FileResult) -> Sequence[Edit]:
    """Return the edits of the rules."""
    return result.edits


@dataclass(frozen=True)
class Conversion:
    """The bytes of a file, the tool's result for them, and the migrated script if something changes."""

    raw: bytes
    result: FileResult
    migrated: Migrated | None


class Conversions:
    """The files of a project and their conversions.

    Args:
        configuration: the rules that act, and the files that are not converted.
        files: the files of the project.
        paths: those that the script may import. They are read together, because the type of a name in one file can
            depend on another file.
        report_late: called when a file is imported that is only converted then, or when a file that imports it is,
            because no import statement names it where Python looks before the script starts, or it has changed since.
        edits: returns those that are made in a file, from its bytes, its path and its result.
    """

    def __init__(
        self,
        configuration: Configuration,
        files: ProjectFiles,
        paths: Iterable[str],
        report_late: Callable[[str, FileResult], None] = lambda path, result: None,
        edits: Edits = edits_of_rules,
    ) -> None:
        self.configuration = configuration
        self.files = files
        self.paths = list(paths)
        self._late, self._edits = report_late, edits
        self._known: dict[str, Conversion] = {}
        self._unreported: set[str] = set()  # paths of those that report_late() has yet to be called for

    def convert_all(self) -> Results:
        """Convert the files that the script may import.

        Returns:
            Path and result of each file that can be opened and is not excluded.
        """
        convert = self.configuration.converter(self.paths)
        for path in self.paths:
            raw = None if self.configuration.excludes(path) else whole_file.read_if_readable(path)
            if raw is not None:  # else the import of the file raises the error
                self._known[path] = self._convert_file(convert, raw, path)
        return [(path, known.result) for path, known in self._known.items()]

    def migrated_file(self, path: str) -> Migrated | None:
        """Return the migrated form of a file as it is now, None if it does not change or is not in the project."""
        key = self.files.normalized_path(path)
        raw = None if key is None or self.configuration.excludes(key) else whole_file.read_if_readable(key)
        if key is None or raw is None:
            return None
        known = self._known.get(key)
        if known is None:
            self._convert_late(key)
        elif known.raw != raw:
            self._known[key] = self._convert_file(self.configuration.converter(self.paths), raw, key)
            self._unreported.add(key)
        known = self._known.get(key)
        if known is not None and key in self._unreported:
            self._unreported.remove(key)
            self._late(key, known.result)
        return None if known is None else known.migrated

    def _convert_late(self, key: str) -> None:
        """Convert a file that no import statement names, and those that it may import from where Python looks now."""
        added = [path for path in reachable_files([key], self.files, sys.path) if path not in self._known]
        self.paths += [path for path in added if path not in self.paths]
        convert = self.configuration.converter(self.paths)
        for path in added:
            raw = None if self.configuration.excludes(path) else whole_file.read_if_readable(path)
            if raw is not None:
                self._known[path] = self._convert_file(convert, raw, path)
                self._unreported.add(path)

    def _convert_file(self, convert: Callable[[bytes, str], FileResult], raw: bytes, path: str) -> Conversion:
        from convert_tf2npu.api import sort_edits, text_of

        result = convert(raw, path)
        edits = sort_edits(self._edits(raw, path, result))
        return Conversion(raw, result, Migrated(text_of(raw), edits) if edits else None)
