"""The arguments of several verbs: their types, which raise an error that names the value, and those after ``--``."""

from __future__ import annotations

import argparse
from typing import Callable

MOST_RANKS = 1024  # processes of one host
MOST_RANKS_OF_JOB = 65536  # on all hosts


def above_zero(text: str, what: str = "a positive number") -> float:
    """Return a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be {what}")
    return value


def number(text: str) -> float:
    """Return a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("inf")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be a number")
    return value


def integer(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of integers from ``least`` to ``most``, which is no limit if None."""
    allowed = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"

    def of(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be {allowed}")
        return value

    return of


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before and after ``--``."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def ranks(least: int, most: int = MOST_RANKS) -> Callable[[str], int]:
    """Return the type of ``--ranks``."""
    return integer(least, most)
