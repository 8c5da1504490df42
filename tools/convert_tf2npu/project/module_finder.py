"""The module finder: from the dotted name of a module to its file in the project, as another file imports it."""

from __future__ import annotations

import os
from typing import Collection

_FRAMEWORKS = ("tensorflow", "keras", "horovod")
_MOST_FOLDERS = 256  # whose answers are kept; files are converted folder by folder


class ModuleFinder:
    """The Python files of a project by the names of their modules.

    Args:
        paths: the absolute path of each.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self._by_place = {path[: -len("/__init__.py")]: path for path in paths if path.endswith("/__init__.py")}
        self._by_place.update((path[: -len(".py")], path) for path in paths if path.endswith(".py"))
        self._tops = {os.path.splitext(os.path.basename(p))[0] for p in paths} | {
            part for p in paths for part in os.path.dirname(p).split(os.sep)
        }
        self._last = {place[place.rfind("/") + 1 :] for place in self._by_place}
        self._found: dict[str, dict[str, str | None]] = {}  # by folder and module

    def may_be(self, name: str) -> bool:
        """Return True if the first part of a dotted name may be a module of the project."""
        return name in self._tops

    def find(self, module: str, importer: str) -> str | None:
        """Return the file of a module, as a file of the project imports it.

        Args:
            module: its dotted name, with leading dots if it is relative.
            importer: the path of the importing file.
        """
        cut = importer.rfind(os.sep)
        folder = importer[: cut if cut > 0 else cut + 1]
        if folder not in self._found and len(self._found) >= _MOST_FOLDERS:
            self._found.clear()
        found = self._found.setdefault(folder, {})
        if module not in found:
            found[module] = self.search(module, folder)
        return found[module]

    def search(self, module: str, folder: str) -> str | None:
        """Return the file of a module, as the files of a folder import it."""
        dots = len(module) - len(module.lstrip("."))
        parts = [part for part in module[dots:].split(".") if part]
        if parts and parts[-1] not in self._last:
            return None
        if dots:
            for _ in range(dots - 1):
                folder = os.path.dirname(folder)
            return self.inside(folder, parts)
        if not parts or not self.may_be(parts[0]):
            return None
        own = folder
        while True:  # the script's own folder, then those above it, which may be on sys.path
            found = self.inside(folder, parts)
            if (
                found
                and parts[0] in _FRAMEWORKS
                and os.path.join(own, "").startswith(os.path.join(folder, parts[0], ""))
            ):
                found = None  # a folder of the same name above the file, not the framework
            above = os.path.dirname(folder)
            is_here = (
                len(parts) > 1
                and parts[0] not in _FRAMEWORKS
                and folder not in self._by_place  # a package is not on sys.path: net/__init__.py imports net.net
                and self.inside(folder, parts[:1])
            )
            if found or is_here or folder == above:  # the first module of that name is the one that is imported
                return found
            folder = above

    def inside(self, folder: str, parts: list[str]) -> str | None:
        """Return the file of a module in a folder, by the parts of its dotted name."""
        return self._by_place.get("/".join([folder.rstrip("/")] + parts))
