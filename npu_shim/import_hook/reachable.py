"""The project files that a script may import, found by reading import statements."""

from __future__ import annotations

import os
from typing import Iterator, Sequence, Tuple

from npu_shim.import_hook.project_files import ProjectFiles

_MOST_BYTES = 2_000_000  # longer files are generated; the migration tool skips them too
_Import = Tuple[int, str]  # leading dots, dotted name


def reachable_files(start: Sequence[str], files: ProjectFiles, path: Sequence[str]) -> list[str]:
    """Return the project files that some files import, directly or indirectly.

    Only import statements count, in any block. So the time depends on the
    imported files and not on the size of the folder.

    Args:
        start: files of the project.
        files: the files of the project.
        path: the folders in which Python looks up imports (``sys.path``).
    Returns:
        Their paths, including ``start``, in the order in which they are found.
    """
    folders = [
        folder for folder in (os.path.abspath(entry) for entry in path) if _may_contain_project_files(folder, files)
    ]
    reached = {key: None for key in map(files.normalized_path, start) if key}
    waiting = list(reached)
    while waiting:
        file = waiting.pop(0)
        for dots, name in _imports_of_file(file):
            for candidate in files_of_import(dots, name.split("."), file, folders):
                key = files.normalized_path(candidate)
                if key and key not in reached:
                    reached[key] = None
                    waiting.append(key)
    return list(reached)


def files_run_by_module(module: str, path: Sequence[str]) -> list[str]:
    """Return the files that ``python -m module`` executes: the packages around it first, the module last.

    Returns:
        Their paths; empty if the module is not found.
    """
    executed = list(files_of_import(0, module.split("."), "", [os.path.abspath(entry) for entry in path]))
    if executed and os.path.basename(executed[-1]) == "__init__.py":
        executed.append(os.path.join(os.path.dirname(executed[-1]), "__main__.py"))
    return executed


def _may_contain_project_files(folder: str, files: ProjectFiles) -> bool:
    root = os.path.join(files.root, "")
    return os.path.join(os.path.realpath(folder), "").startswith(root) or root.startswith(os.path.join(folder, ""))


def _imports_of_file(file: str) -> Iterator[_Import]:
    from convert_tf2npu.api import imported_modules

    for module in imported_modules(read_source(file), file):
        name = module.lstrip(".")
        yield len(module) - len(name), name


def read_source(file: str) -> bytes:
    """Return the bytes of a file; none if it cannot be read, or is so long that a program has made it."""
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            return b""
        with open(file, "rb") as stream:
            return stream.read()
    except OSError:
        return b""  # the import of the file raises the error


def files_of_import(dots: int, parts: list[str], importer: str, folders: list[str]) -> Iterator[str]:
    """Yield the files that an import executes: of the module and of the packages around it."""
    if dots:
        folder = os.path.dirname(importer)
        for _ in range(dots - 1):
            folder = os.path.dirname(folder)
        folders = [folder]
    for folder in folders:
        is_here = False
        for part in parts:
            folder = os.path.join(folder, part)
            for file in (os.path.join(folder, "__init__.py"), folder + ".py"):
                if os.path.isfile(file):
                    is_here = True
                    yield file
                    break
            if not os.path.isdir(folder):
                break
        if is_here:
            return
