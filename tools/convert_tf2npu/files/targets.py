"""Checks of the folders that a run will write, made before it converts anything."""

from __future__ import annotations

import os

from .errors import UsageError
from .extensions import NOTEBOOK


def check_target(source: str, target: str) -> None:
    """Refuse a target that is the source, contains it, or is inside it.

    Raises:
        UsageError: it is.
    """
    real_source, real_target = os.path.realpath(source), os.path.realpath(target)
    single = not os.path.isdir(real_source)
    if real_source == real_target or single and real_source == os.path.join(real_target, os.path.basename(source)):
        raise UsageError("{0} is the source itself. Use --in-place to change it", target)
    if single:
        return
    if (real_target + os.sep).startswith(real_source + os.sep):
        raise UsageError("{0} is inside the source {1}. Choose a folder outside", target, source)
    if (real_source + os.sep).startswith(real_target + os.sep):
        raise UsageError("{0} contains the source {1}. Choose another folder", target, source)


def check_output(source: str, target: str) -> None:
    """Refuse a target that cannot be written, or that check_target() refuses.

    Raises:
        UsageError: it cannot be written.
    """
    check_target(source, target)
    if os.path.isdir(target):
        return  # it may have all files already
    if os.path.lexists(target):
        if os.path.isdir(source) or not target.endswith((".py", NOTEBOOK)):
            raise UsageError("{0} exists and is not a folder", target)
        target = os.path.dirname(os.path.abspath(target))
    try:
        _try_to_write_in(nearest_existing_path(target))
    except OSError as error:
        raise UsageError("cannot write {0}: {1}. Nothing was changed there", target, error.strerror or error)


def check_reports(folder: str) -> None:
    """Refuse a folder of reports that cannot be written.

    Raises:
        UsageError: it cannot be written.
    """
    above = nearest_existing_path(folder)
    if not os.path.isdir(above):
        raise UsageError("-r {0}: {1} is not a folder", folder, above)
    try:
        _try_to_write_in(above)
    except OSError as error:
        raise UsageError("-r {0}: cannot write the reports: {1}. Nothing was written", folder, error.strerror or error)


def nearest_existing_path(path: str) -> str:
    """Return a path, or the nearest one above it that exists."""
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _try_to_write_in(folder: str) -> None:
    """Make a file in a folder, and remove it.

    Raises:
        OSError: the folder takes no file.
    """
    path = os.path.join(folder, f".convert_tf2npu-{os.getpid()}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.remove(path)
