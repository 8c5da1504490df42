"""Checks of the paths in arguments, which a verb makes before anything else."""

from __future__ import annotations

import os
import tempfile

from npu_shim.cli._guard import WrongUsage


def check_file(path: str, advice: str) -> None:
    """Check that a file can be read.

    Args:
        path: of the file.
        advice: the sentence that follows, without a full stop.
    Raises:
        WrongUsage: it cannot.
    """
    if os.path.isdir(path):
        raise WrongUsage(f"{path} is a folder. {advice}")
    if not os.path.exists(path):
        raise WrongUsage(f"file not found: {path}. {advice}")
    if not os.access(path, os.R_OK):
        raise WrongUsage(f"{path}: Permission denied. {advice}")


def check_script(path: str) -> None:
    """Check that Python can run a path: a file, or a folder with __main__.py. See check_file()."""
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    check_file(file, "Give a Python script, a folder with __main__.py, or -m and a module.")


def check_folder(path: str, advice: str) -> None:
    """Check that a folder can be read. See check_file()."""
    if not os.path.isdir(path):
        problem = f"{path} is a file" if os.path.exists(path) else f"folder not found: {path}"
        raise WrongUsage(f"{problem}. {advice}")


def check_project(folder: str | None, script: str | None) -> None:
    """Check that a script is in the folder of its project. None is no folder, or a module. See check_file()."""
    if folder is None:
        return
    check_folder(folder, "Give the folder of the project.")
    if script and not os.path.realpath(script).startswith(os.path.join(os.path.realpath(folder), "")):
        raise WrongUsage(f"{script} is outside of {folder}. Give the folder of the project that has it.")


def check_output_file(option: str, path: str | None) -> None:
    """Check that an option can have a file that is to be written.

    Args:
        option: the option.
        path: its value; None or "-" is no file.
    Raises:
        WrongUsage: it cannot.
    """
    if path is None or path == "-":
        return
    if os.path.isdir(path):
        raise WrongUsage(f"{option} {path} is a folder. Name a file.")
    above = os.path.dirname(os.path.abspath(path))
    try:
        check_folder(above, "Name a file in a folder that exists.")
    except WrongUsage as error:
        raise WrongUsage(f"{option} {path} cannot be written: {error}")
    try:
        if os.path.exists(path):
            with open(path, "ab"):
                return
        _check_disk(option, path, above)
    except OSError as error:
        raise WrongUsage(f"{option} {path} cannot be written: {error.strerror}. Name another file.")


def check_output_folder(option: str, path: str | None, must_be_empty: bool = False) -> None:
    """Check that an option can have a folder that is to be written.

    Args:
        option: the option.
        path: its value, a folder that need not exist; None is no folder.
        must_be_empty: True if the folder must have no files yet.
    Raises:
        WrongUsage: it cannot.
    """
    if path is None:
        return
    above = os.path.abspath(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        is_itself = above == os.path.abspath(path)
        raise WrongUsage(f"{option} {path}: {'it' if is_itself else above} is a file. Name a folder.")
    try:
        if must_be_empty and os.path.isdir(path) and os.listdir(path):
            raise WrongUsage(f"{option} {path}: the folder is not empty. Give another one, or remove it.")
        _check_disk(option, path, above)
    except OSError as error:
        raise WrongUsage(f"{option} {path} cannot be written: {error.strerror}. Name a writable folder.")


def _check_disk(option: str, path: str, folder: str) -> None:
    """Make a file that has no name in an existing folder, and see that its disk has space.

    Raises:
        OSError: the folder takes no file.
        WrongUsage: the disk is full.
    """
    with tempfile.TemporaryFile(dir=folder):
        disk = os.statvfs(folder)
    if disk.f_blocks and not disk.f_bavail:
        raise WrongUsage(f"{option} {path} cannot be written: the disk is full. Free some space, or name another disk.")
