"""The module finder: from the dotted name of a module to its file in the project, as another file imports it."""

from __future__ import annotations

import itertools
import os
import re
from typing import Callable, Collection, Iterator

_FRAMEWORKS = ("tensorflow", "keras", "horovod")
_MOST_FOLDERS = 256  # whose answers are kept; files are converted folder by folder
_PATH_ADDED = re.compile(rb"^[ \t]*sys\.path\.(?:append|insert)\((.*)", re.MULTILINE)
_LITERAL = re.compile(r"""['"]([^'"]+)['"]""")


class ModuleFinder:
    """The Python files of a project by the names of their modules.

    Args:
        paths: the absolute path of each.
        raw: returns the bytes of a file.
    """

    def __init__(self, paths: Collection[str], raw: Callable[[str], bytes]) -> None:
        self._raw = raw
        self._by_place = {path[: -len("/__init__.py")]: path for path in paths if path.endswith("/__init__.py")}
        self._by_place.update((path[: -len(".py")], path) for path in paths if path.endswith(".py"))
        self._tops = {os.path.splitext(os.path.basename(p))[0] for p in paths} | {
            part for p in paths for part in os.path.dirname(p).split(os.sep)
        }
        self._root = os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""
        # Checkouts and archives of a package: google+net, net-main. The package is net.
        name = os.path.basename(self._root)
        self._root_words = frozenset(re.findall(r"\w+", name)).difference(_FRAMEWORKS, [name])
        self._tops |= self._root_words
        self._last = {place[place.rfind("/") + 1 :] for place in self._by_place}
        self._by_folder: dict[str, dict[str, str | None]] = {}  # by folder and module
        self._started: dict[str, bool] = {}  # by folder
        self._added: dict[str, list[str]] = {}  # by folder
        self._in_folder: dict[str, list[str]] = {}
        for path in self._by_place.values():
            self._in_folder.setdefault(os.path.dirname(path), []).append(path)

    def may_be_module_of_project(self, name: str) -> bool:
        """Return True if the first part of a dotted name may be a module of the project."""
        return name in self._tops

    def find_for_file(self, module: str, importer: str) -> str | None:
        """Return the file of a module, as a file of the project imports it.

        Args:
            module: its dotted name, with leading dots if it is relative.
            importer: the path of the importing file.
        """
        cut = importer.rfind(os.sep)
        folder = importer[: cut if cut > 0 else cut + 1]
        if folder not in self._by_folder and len(self._by_folder) >= _MOST_FOLDERS:
            self._by_folder.clear()
        in_folder = self._by_folder.setdefault(folder, {})
        if module not in in_folder:
            in_folder[module] = self.find_for_folder(module, folder)
        return in_folder[module]

    def find_for_folder(self, module: str, folder: str) -> str | None:
        """Return the file of a module, as the files of a folder import it."""
        dots = len(module) - len(module.lstrip("."))
        parts = [part for part in module[dots:].split(".") if part]
        if parts and parts[-1] not in self._last:
            return None
        if dots:
            for _ in range(dots - 1):
                folder = os.path.dirname(folder)
            return self.find_in_folder(folder, parts)
        if not parts or not self.may_be_module_of_project(parts[0]):
            return None
        path = next(
            self._framework_replacements(folder, parts)
            if parts[0] in _FRAMEWORKS
            else itertools.chain(self._candidate_files(folder, parts), self._files_on_added_paths(folder, parts)),
            None,
        )
        return self.find_in_folder(self._root, parts[1:]) if path is None and parts[0] in self._root_words else path

    def _framework_replacements(self, importing_folder: str, parts: list[str]) -> Iterator[str]:
        """Yield the files that replace a module of a framework, the nearest first.

        A folder of that name in a package, or around the importing file, is another module than the framework. So is a
        folder without ``__init__.py``: Python prefers the installed package.
        """
        for folder in _folder_and_parents(importing_folder):
            top = self.find_in_folder(folder, parts[:1])
            if (
                top
                and folder not in self._by_place
                and not f"{importing_folder}/".startswith(f"{folder.rstrip('/')}/{parts[0]}/")
            ):
                path = self.find_in_folder(folder, parts)
                if path:
                    yield path

    def _candidate_files(self, importing_folder: str, parts: list[str]) -> Iterator[str]:
        """Yield the files of a module, the most likely first.

        Folders may be on ``sys.path``: those without ``__init__.py``, and packages in which a script is started.
        """
        inner = []  # in packages, which are as a rule not on sys.path: net/__init__.py imports net.net
        for folder in _folder_and_parents(importing_folder):
            path = self.find_in_folder(folder, parts)
            if folder in self._by_place:
                inner += [(folder, path)] if path else []
            elif path or len(parts) > 1 and self.find_in_folder(folder, parts[:1]):  # the first module of that name
                yield from (other for package, other in inner if self._has_startable_script(package))
                yield from [path] if path else []
                return
        yield from (other for _, other in inner)

    def _files_on_added_paths(self, importing_folder: str, parts: list[str]) -> Iterator[str]:
        """Yield the files of a module in the folders that files of a folder add to ``sys.path``, the nearest first.

        What the path begins with is not evaluated: ``os.path.join(ROOT, "../utils")`` is each folder "utils" beside the
        folder of the files or one above it.
        """
        if importing_folder not in self._added:
            texts = map(self._raw, self._in_folder.get(importing_folder, ()))
            calls = (call.decode("utf-8", "replace") for text in texts for call in _PATH_ADDED.findall(text))
            names = (
                [name for name in "/".join(_LITERAL.findall(call)).split("/") if name.strip(".")] for call in calls
            )
            self._added[importing_folder] = ["/".join(path) for path in names if path]
        for added in self._added[importing_folder]:
            for folder in _folder_and_parents(importing_folder):
                path = self.find_in_folder(f"{folder.rstrip('/')}/{added}", parts)
                if path:
                    yield path

    def _has_startable_script(self, folder: str) -> bool:
        """Return True if a file in a folder is a script that users start."""
        if folder not in self._started:
            inside = self._in_folder.get(folder, ())
            self._started[folder] = any(b"__main__" in self._raw(path) for path in inside)
        return self._started[folder]

    def find_in_folder(self, folder: str, parts: list[str]) -> str | None:
        """Return the file of a module in a folder, by the parts of its dotted name."""
        return self._by_place.get("/".join([folder.rstrip("/")] + parts))


def _folder_and_parents(folder: str) -> Iterator[str]:
    """Yield a folder and those above it."""
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
