"""The arguments of verbs: their options, their types, which raise an error that names the value, those after ``--``."""

from __future__ import annotations

import argparse
import re
from argparse import _ActionsContainer
from typing import Callable, Mapping

from npu_shim._tensorflow.types import Value
from npu_shim.cli._guard import WrongUsage

MOST_RANKS = 1024  # processes of one host
MOST_RANKS_OF_JOB = 65536  # on all hosts


def add_options(parser: argparse.ArgumentParser, text: str, **settings: Mapping[str, Value]) -> None:
    """Add options to a parser, as its help shows them.

    Args:
        parser: the parser.
        text: for each option a line with its names, the name of its value, two spaces and its help, as in
            ``-r --report DIR  write the result to DIR``. Indented lines continue the help, ``|`` excludes the option
            before, and a line such as ``recordings:`` begins a group. An option without a value and without settings
            is True if it is given.
        settings: other arguments of ``add_argument``, by the long name of the option.
    """
    group: _ActionsContainer = parser
    target = group
    lines = [line for line in re.sub(r"\n +", " ", text).splitlines() if line]
    for line, following in zip(lines, [*lines[1:], ""]):
        if not line.startswith(("-", "|")):
            group = parser.add_argument_group(line[:-1])
            continue
        if not line.startswith("|"):
            target = group.add_mutually_exclusive_group() if following.startswith("|") else group
        names, _, explanation = line.strip("| ").partition("  ")
        words = names.split()
        given = dict(settings.pop(next(word[2:].replace("-", "_") for word in words if word.startswith("--")), {}))
        if not words[-1].startswith("-"):
            given["metavar"] = words.pop()
        elif not given:
            given["action"] = "store_true"
        target.add_argument(*words, help=explanation, **given)
    assert not settings, settings


def add_script_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a script, or -m and a module, which all words behind belong to."""
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")


def check_needs(args: argparse.Namespace, other: str, *names: str) -> None:
    """Check that options are given only with another one that they need.

    Raises:
        WrongUsage: one is given without it.
    """
    for name in names:
        if getattr(args, name) and not getattr(args, other):
            raise WrongUsage(f"--{name.replace('_', '-')} needs --{other}. Add it.")


def parse_positive(text: str, noun: str = "a positive number") -> float:
    """Return a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be {noun}")
    return value


def parse_finite(text: str) -> float:
    """Return a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("inf")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be a number")
    return value


def integer_parser(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return the type of integers from ``least`` to ``most``, which is no limit if None."""
    allowed = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"

    def parse_integer(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be {allowed}")
        return value

    return parse_integer


def split_at_dashes(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before and after ``--``."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]
