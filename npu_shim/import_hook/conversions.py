"""What becomes of a script's own files: each is migrated once, in memory, by the tool's own rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Tuple

from npu_shim.import_hook.lines import Migrated
from npu_shim.import_hook.own import Own

Named = Tuple[str, Any]  # a path, and the tool's result for the file


@dataclass(frozen=True)
class Outcome:
    """A file's bytes, the tool's result for them, and the migrated script where something changes."""

    raw: bytes
    result: Any
    migrated: Migrated | None


class Conversions:
    """The files of a project and what becomes of them.

    Args:
        settings: which rules act: the fields of the tool's Settings.
        own: what belongs to the project.
        paths: its files that the script may import; they are read together, because what a name is in one
            file is often said in another.
        late: is told of each file that is converted only when it is imported, because no import statement
            names it, or because it has changed since.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        own: Own,
        paths: Iterable[str],
        late: Callable[[str, Any], None] = lambda path, result: None,
    ) -> None:
        self.settings = dict(settings)
        self.own = own
        self.paths = list(paths)
        self._late = late
        self._known: dict[str, Outcome] = {}

    def convert_all(self) -> list[Named]:
        """Converts the files that the script may import.

        Returns:
            Path and result of each that can be opened and shall be converted.
        """
        converter = self._converter(self.paths)
        for path in self.paths:
            raw = None if self.own.is_excluded(path) else _read(path)
            if raw is not None:
                self._known[path] = _outcome(converter, raw, path)
        return [(path, outcome.result) for path, outcome in self._known.items()]

    def migrated(self, path: str) -> Migrated | None:
        """The migrated form of a file as it is now; None where it stays as it is, or is none of the project."""
        key = self.own.key(path)
        raw = None if key is None or self.own.is_excluded(key) else _read(key)
        if key is None or raw is None:
            return None
        known = self._known.get(key)
        if known is None or known.raw != raw:
            known = _outcome(self._converter(self.paths + [key]), raw, key)
            self._known[key] = known
            self._late(key, known.result)
        return known.migrated

    def _converter(self, paths: list[str]) -> Any:
        """A converter holds syntax trees of the files; it is let go when it has done its work."""
        from convert_tf2npu.cli.config import Settings
        from convert_tf2npu.engine.converter import Converter, project_of

        settings = Settings(**self.settings)
        return Converter(settings, project_of(settings, paths, filter(self.own.is_excluded, paths)))


def _outcome(converter: Any, raw: bytes, path: str) -> Outcome:
    from convert_tf2npu.syntax.source import Source, ordered

    result = converter.convert(raw, path)
    edits = ordered(result.edits)
    return Outcome(raw, result, Migrated(Source(raw).text, edits) if edits else None)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None  # whoever imports it gets the error
