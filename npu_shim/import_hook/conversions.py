"""Conversion of a script's own files: each is migrated once, in memory, by the tool's rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Mapping, Tuple

from npu_shim.import_hook.lines import Migrated
from npu_shim.import_hook.project_files import ProjectFiles

if TYPE_CHECKING:
    from convert_tf2npu.engine.converter import Converter
    from convert_tf2npu.engine.results import FileResult

Results = List[Tuple[str, "FileResult"]]  # paths, and the tool's results for the files


@dataclass(frozen=True)
class Conversion:
    """The bytes of a file, the tool's result for them, and the migrated script if something changes."""

    raw: bytes
    result: FileResult
    migrated: Migrated | None


class Conversions:
    """The files of a project and their conversions.

    Args:
        settings: the fields of the tool's Settings.
        files: the files of the project.
        paths: those that the script may import. They are read together, because the type of a name in one file can
            depend on another file.
        late: called for each file that is converted only when it is imported, because no import statement names it
            or it has changed since.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        files: ProjectFiles,
        paths: Iterable[str],
        late: Callable[[str, FileResult], None] = lambda path, result: None,
    ) -> None:
        self.settings = dict(settings)
        self.files = files
        self.paths = list(paths)
        self._late = late
        self._known: dict[str, Conversion] = {}

    def convert_all(self) -> Results:
        """Convert the files that the script may import.

        Returns:
            Path and result of each file that can be opened and is not excluded.
        """
        converter = self._converter(self.paths)
        for path in self.paths:
            raw = None if self.files.is_excluded(path) else _read(path)
            if raw is not None:
                self._known[path] = _convert(converter, raw, path)
        return [(path, known.result) for path, known in self._known.items()]

    def migrated(self, path: str) -> Migrated | None:
        """Return the migrated form of a file as it is now, None if it does not change or is not in the project."""
        key = self.files.key(path)
        raw = None if key is None or self.files.is_excluded(key) else _read(key)
        if key is None or raw is None:
            return None
        known = self._known.get(key)
        if known is None or known.raw != raw:
            known = _convert(self._converter(self.paths + [key]), raw, key)
            self._known[key] = known
            self._late(key, known.result)
        return known.migrated

    def _converter(self, paths: list[str]) -> Converter:
        """Return a converter. It holds syntax trees of the files, so keep it only as long as needed."""
        from convert_tf2npu.engine.converter import Converter, project_of
        from convert_tf2npu.engine.settings import Settings

        settings = Settings(**self.settings)
        return Converter(settings, project_of(settings, paths, filter(self.files.is_excluded, paths)))


def _convert(converter: Converter, raw: bytes, path: str) -> Conversion:
    from convert_tf2npu.syntax.source import Source, ordered

    result = converter.convert(raw, path)
    edits = ordered(result.edits)
    return Conversion(raw, result, Migrated(Source(raw).text, edits) if edits else None)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None  # the import of the file raises the error
