"""What values an option takes: a sentence for people and a test for the check."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple


class Domain(NamedTuple):
    """``text`` completes "it must be ..."; ``accepts`` gets a value of the right type."""

    text: str
    accepts: Callable[[Any], bool]
    values: tuple[Any, ...] = ()


def one_of(*values: Any) -> Domain:
    """One of a few values."""
    return Domain("one of " + ", ".join(repr(v) for v in values), lambda v: v in values, values)


def at_least(low: int) -> Domain:
    """A number with a lower bound."""
    return Domain(f"at least {low}", lambda v: v >= low)


def between(low: int, high: int, unit: str = "") -> Domain:
    """A number with two bounds."""
    return Domain(f"from {low} to {high}{' ' + unit if unit else ''}", lambda v: low <= v <= high)


def matching(pattern: str, text: str) -> Domain:
    """A text of a form."""
    return Domain(text, lambda v: re.match(pattern, v) is not None)


def any_text(text: str = "a text") -> Domain:
    """A text nobody checks."""
    return Domain(text, lambda v: True)


def path(text: str) -> Domain:
    """A file or directory name; whether it exists is for the machine with the card to say."""
    return Domain(text, lambda v: v != "")


BOOL = Domain("True or False", lambda v: True, (True, False))
INT32_MAX = 2147483647
