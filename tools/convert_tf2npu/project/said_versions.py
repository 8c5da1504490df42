"""The versions of TensorFlow that the user gives for files."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..files.globs import matches_any_glob


class SaidVersions(NamedTuple):
    """Patterns of files that speak TensorFlow 1, and of those that speak TensorFlow 2, relative to a folder."""

    folder: str = ""
    one: tuple[str, ...] = ()
    two: tuple[str, ...] = ()

    def version_of(self, path: str) -> str:
        """Return ``1`` or ``2`` for a file; the empty string if no pattern matches."""
        if not path or not (self.one or self.two):
            return ""
        relative = os.path.relpath(os.path.realpath(path), self.folder).replace(os.sep, "/")
        return "1" if matches_any_glob(relative, self.one) else "2" if matches_any_glob(relative, self.two) else ""
