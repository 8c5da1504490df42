"""Copies of the user's files that a command has left because it was killed."""

from __future__ import annotations

from npu_shim.cli._guard import WrongUsage
from npu_shim.cli._lines import line_printer
from npu_shim.rehearsal.files import temporary
from npu_shim.rehearsal.files.kept import leftover_stores_with_copies

_MOVE = "Move them back to the places that files.jsonl there names, or remove this folder."


def print_copies(command: str, *folders: str) -> None:
    """Print where there are copies.

    Args:
        command: begins the line, as in ``npu-shim verify``.
        folders: in which the command will write.
    Raises:
        WrongUsage: one of these folders has copies.
    """
    for store in temporary.leftover_copies():
        line_printer(command)(f"a command that was killed left copies of your files in {store}. {_MOVE}")
    for store in (store for folder in folders for store in leftover_stores_with_copies(folder)):
        raise WrongUsage(f"{store} has copies of your files, because a command was killed. {_MOVE}")
