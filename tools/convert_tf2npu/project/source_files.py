"""The Python files of a run as bytes and paths."""

from __future__ import annotations

import os
from typing import Iterable, KeysView

from .module_cache import LRU
from .module_finder import ModuleFinder

_MOST_BYTES = 16_000_000  # of files in memory
# Of a script that is analysed. The tree of a larger file takes gigabytes, and only programs write such files.
MOST_BYTES = 2_000_000
_ROOTS = (b"tensorflow", b"keras", b"horovod", b"tf_slim", b"npu_bridge", b"npu_shim")


class SourceFiles:
    """The Python files of a run.

    Args:
        paths: the files as the user names them.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._given = {os.path.abspath(path): path for path in paths}
        self._absolute = {given: path for path, given in self._given.items()}
        self._raw: LRU[str, bytes] = LRU(_MOST_BYTES)
        self.finder = ModuleFinder(self._given, self.raw)

    @property
    def paths(self) -> KeysView[str]:
        """The absolute paths of the files."""
        return self._given.keys()

    @property
    def paths_as_given(self) -> tuple[str, ...]:
        """The paths as the user names them."""
        return tuple(self._given.values())

    def absolute_path(self, path: str) -> str:
        """Return the absolute path of a file; empty for code without a file."""
        if path in self._given:  # as a rule: to normalize a path takes longer
            return path
        return self._absolute.get(path) or path and os.path.abspath(path)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file, which may be in memory since the last time.

        Raises:
            OSError: it cannot be read.
        """
        path = self.absolute_path(path)
        content = self._raw.get(path)
        if content is None:
            with open(path, "rb") as stream:
                content = stream.read()
            self._raw.put(path, content, len(content))
        return content

    def raw(self, path: str) -> bytes:
        """Return the bytes of a file; nothing if it cannot be read."""
        try:
            return self.read(path)
        except OSError:
            return b""  # reported when the file itself is converted


def mentions_frameworks(raw: bytes) -> bool:
    """Return True if a file contains the name of TensorFlow, Keras, Horovod or of a package that replaces them."""
    return any(root in raw for root in _ROOTS)
