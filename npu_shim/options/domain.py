"""The values that an option accepts: a phrase for messages and a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Callable, NamedTuple

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import OptionValue


class Domain(NamedTuple):
    """``text`` completes "it must be ...". ``accepts`` gets a value of the right type."""

    text: str
    accepts: Callable[[OptionValue], bool]
    values: tuple[OptionValue, ...] = ()


def one_of(*values: OptionValue) -> Domain:
    """Accept one of some values."""
    return Domain("one of " + ", ".join(repr(v) for v in values), lambda v: v in values, values)


def at_least(low: int) -> Domain:
    """Accept a number with a lower bound."""
    return Domain(f"at least {low}", lambda v: v >= low)


def between(low: int, high: int, unit: str = "") -> Domain:
    """Accept a number between two bounds."""
    return Domain(f"from {low} to {high}{' ' + unit if unit else ''}", lambda v: low <= v <= high)


def matching(pattern: str, text: str) -> Domain:
    """Accept a string that matches a pattern."""
    return Domain(text, lambda v: re.match(pattern, v) is not None)


def any_text(text: str = "a text") -> Domain:
    """Accept any string."""
    return Domain(text, lambda v: True)


def path(text: str) -> Domain:
    """Accept the name of a file or directory, which may exist only on the machine with the NPU."""
    return Domain(text, lambda v: v != "")


BOOL = Domain("True or False", lambda v: True, (True, False))
INT32_MAX = 2147483647
