"""Checks of the paths in arguments, which a verb makes before anything else."""

from __future__ import annotations

import os
import tempfile


def missing_file(path: str, advice: str) -> str | None:
    """Return why a file cannot be read, None if it can.

    Args:
        path: of the file.
        advice: the sentence that follows, without a full stop.
    """
    if os.path.isdir(path):
        return f"{path} is a folder. {advice}"
    if not os.path.exists(path):
        return f"file not found: {path}. {advice}"
    if not os.access(path, os.R_OK):
        return f"{path}: Permission denied. {advice}"
    return None


def missing_script(path: str) -> str | None:
    """Return why Python cannot run a path, None if it is a file or a folder with __main__.py."""
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    return missing_file(file, "Give a Python script, a folder with __main__.py, or -m and a module.")


def missing_folder(path: str, advice: str) -> str | None:
    """Return why a folder cannot be read, None if it can. See missing_file()."""
    if os.path.isdir(path):
        return None
    return f"{path} is a file. {advice}" if os.path.exists(path) else f"folder not found: {path}. {advice}"


def unwritable_file(option: str, path: str | None) -> str | None:
    """Return why an option cannot have a file that is to be written, None if it can.

    Args:
        option: the option.
        path: its value; None or "-" is no file.
    """
    if path is None or path == "-":
        return None
    if os.path.isdir(path):
        return f"{option} {path} is a folder. Name a file."
    above = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(above):
        return f"{option} {path} cannot be written: {missing_folder(above, 'Name a file in a folder that exists.')}"
    try:
        if os.path.exists(path):
            with open(path, "ab"):
                return None
        return _problem_of_disk(option, path, above)
    except OSError as error:
        return f"{option} {path} cannot be written: {error.strerror}. Name another file."


def unwritable_folder(option: str, path: str | None, empty: bool = False) -> str | None:
    """Return why an option cannot have a folder that is to be written, None if it can.

    Args:
        option: the option.
        path: its value, a folder that need not exist; None is no folder.
        empty: True if the folder must have no files yet.
    """
    if path is None:
        return None
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        is_itself = above == os.path.abspath(path)
        return f"{option} {path}: {'it' if is_itself else above} is a file. Name a folder."
    try:
        if empty and os.path.isdir(path) and os.listdir(path):
            return f"{option} {path}: the folder is not empty. Give another one, or remove it."
        return _problem_of_disk(option, path, above)
    except OSError as error:
        return f"{option} {path} cannot be written: {error.strerror}. Name a writable folder."


def _problem_of_disk(option: str, path: str, folder: str) -> str | None:
    """Make a file that has no name in an existing folder, and see that its disk has space.

    Raises:
        OSError: the folder takes no file.
    """
    with tempfile.TemporaryFile(dir=folder):
        disk = os.statvfs(folder)
    if disk.f_blocks and not disk.f_bavail:
        return f"{option} {path} cannot be written: the disk is full. Free some space, or name another disk."
    return None
