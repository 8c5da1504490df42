"""The lines of a verb on standard error. --quiet hides those that are no errors."""

from __future__ import annotations

import sys
from typing import Callable

from npu_shim.cli._guard import NOT_RUN

QUIET = "-q --quiet  print the result and errors only, no progress"  # for add_options()


def line_printer(command: str, quiet: bool = False) -> Callable[[str], None]:
    """Return a function that prints a line.

    Args:
        command: begins the line, as in ``npu-shim verify``.
        quiet: True for a function that prints nothing.
    """

    def print_line(line: str) -> None:
        if not quiet:
            print(f"{command}: {line}", file=sys.stderr, flush=True)

    return print_line


def print_error(command: str, text: str) -> int:
    """Print an error. Return the exit code."""
    line_printer(command)(f"error: {text}")
    return NOT_RUN
