"""The files that belong to a script: those of its folder, without libraries in subfolders."""

from __future__ import annotations

import os
import sysconfig

from npu_shim._host.packages import SITE_FOLDERS
from npu_shim.import_hook.tool import PACKAGE, package_root

_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")


class ProjectFiles:
    """The files of a project.

    Args:
        root: its folder, or one single file.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._library: dict[str, bool] = {}

    def normalized_path(self, path: str) -> str | None:
        """Return the normal form of the path of a project file, None for every other file."""
        for spelling in (os.path.abspath(path), os.path.realpath(path)):
            if spelling == self.root or (
                self._is_below_root(spelling) and not self._is_in_library(os.path.dirname(spelling))
            ):
                return spelling
        return None

    def _is_below_root(self, path: str) -> bool:
        return path.startswith(os.path.join(self.root, ""))

    def _is_in_library(self, folder: str) -> bool:
        """Return True if a folder below the root, or a folder between them, contains installed code."""
        if folder == self.root or not self._is_below_root(folder):
            return False
        if folder not in self._library:
            self._library[folder] = is_library(folder) or self._is_in_library(os.path.dirname(folder))
        return self._library[folder]


def project_root(path: str) -> str:
    """Return the folder of a script's project.

    Args:
        path: of the script.
    Returns:
        The folder that the script's imports start from: its own folder, or the parent of the outermost package
        around it. For an installed script, its package or the script itself.
    """
    file = os.path.realpath(path)
    package, folder = file, os.path.dirname(file)
    while os.path.isfile(os.path.join(folder, "__init__.py")) and folder != os.path.dirname(folder):
        package, folder = folder, os.path.dirname(folder)
    return package if is_library(folder) else folder


def is_library(folder: str) -> bool:
    """Return True if a folder contains installed code: of Python, a virtual environment, or npu_shim itself."""
    return (
        os.path.basename(folder) in SITE_FOLDERS
        or os.path.realpath(folder) in _installed_folders()
        or any(os.path.exists(os.path.join(folder, mark)) for mark in _ENVIRONMENT_MARKS)
    )


def _installed_folders() -> set[str]:
    ours = [os.path.join(package_root(), *parts) for parts in (("npu_shim",), (PACKAGE,), ("tools", PACKAGE))]
    theirs = [path for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))]
    return {os.path.realpath(path) for path in ours + theirs}
