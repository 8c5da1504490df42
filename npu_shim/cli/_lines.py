"""The lines of a verb on standard error. --quiet hides those that are no errors."""

from __future__ import annotations

import sys
from typing import Callable

from npu_shim.cli._guard import NOT_RUN

QUIET = "-q --quiet  print the result and errors only, no progress"  # for add_options()


def progress(command: str, quiet: bool = False) -> Callable[[str], None]:
    """Return a function that prints a line.

    Args:
        command: begins the line, as in ``npu-shim verify``.
        quiet: True for a function that prints nothing.
    """

    def show(line: str) -> None:
        if not quiet:
            print(f"{command}: {line}", file=sys.stderr, flush=True)

    return show


def fail(command: str, text: str) -> int:
    """Print an error. Return the exit code."""
    progress(command)(f"error: {text}")
    return NOT_RUN
