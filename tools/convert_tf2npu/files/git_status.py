"""A check that git can undo changes in place."""

from __future__ import annotations

import os
import subprocess
from typing import Sequence

from .errors import UsageError


def refuse_uncommitted(source: str, changed: Sequence[str]) -> None:
    """Refuse to change files in place if git cannot restore their old content.

    A source outside of any git work tree is accepted.

    Args:
        source: the file or folder.
        changed: the paths of the files that are about to be changed.

    Raises:
        UsageError: the source has uncommitted changes, git ignores one of the files, or git fails.
    """
    folder = os.path.realpath(source)
    folder = folder if os.path.isdir(folder) else os.path.dirname(folder)
    command = [
        "git",
        "-C",
        folder,
        "status",
        "--porcelain",
        "-z",
        "--ignored",
        "--untracked-files=all",
        "--ignore-submodules=none",
        "--",
        ".",
    ]
    try:
        status = subprocess.run(command, capture_output=True, check=False, env=dict(os.environ, LC_ALL="C"))
    except FileNotFoundError:
        if _has_work_tree(folder):
            raise _unknown_status_error(source, "git is not installed")
        return
    if status.returncode:
        said = status.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        if "not a git repository" in said[0] or "must be run in a work tree" in said[0]:
            return
        raise _unknown_status_error(source, said[0])
    entries = _status_entries(status.stdout)
    dirty = [name for state, name in entries if state != "!!"]
    if dirty:
        raise UsageError(
            "{0} has uncommitted changes ({1}{2}). Commit them to be able to undo the migration, or add --force",
            source,
            dirty[0],
            ", ..." if len(dirty) > 1 else "",
        )
    top = subprocess.run(["git", "-C", folder, "rev-parse", "--show-toplevel"], stdout=subprocess.PIPE, check=False)
    root = os.path.realpath(os.fsdecode(top.stdout).rstrip("\n"))
    ignored = [os.path.join(root, name) for state, name in entries if state == "!!"]
    for path in changed:
        if any(
            os.path.realpath(path) == name or name.endswith(os.sep) and os.path.realpath(path).startswith(name)
            for name in ignored
        ):
            raise UsageError(
                "git ignores {0}, so you could not undo the migration. Use --exclude, or add --force", path
            )


def _status_entries(output: bytes) -> list[list[str]]:
    """Return state and path of each entry of ``git status -z``; of a renamed file only the new path."""
    entries: list[list[str]] = []
    pieces = iter(os.fsdecode(output).split("\0"))
    for piece in pieces:
        if piece:
            entries.append([piece[:2], piece[3:]])
            if "R" in piece[:2] or "C" in piece[:2]:
                next(pieces, "")
    return entries


def _has_work_tree(folder: str) -> bool:
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)
    return True


def _unknown_status_error(source: str, why: str) -> UsageError:
    return UsageError(
        "cannot check {0} for uncommitted changes ({1}). Add --force if you need not undo the migration", source, why
    )
