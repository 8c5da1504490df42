"""The values that an option accepts: a phrase for messages and a test."""

from __future__ import annotations

import re
from typing import Callable, Mapping, NamedTuple

from npu_shim._tensorflow.types import OptionValue


class Domain(NamedTuple):
    """``text`` completes "it must be ...". ``accepts`` gets a value of the right type."""

    text: str
    accepts: Callable[[OptionValue], bool]
    values: tuple[OptionValue, ...] = ()


def domain_of_option(form: Mapping[str, OptionValue]) -> Domain:
    """Return the domain that an option has in options.json.

    Args:
        form: one of FORMS, with its arguments.
    """
    ((name, given),) = form.items()
    return FORMS[name](*given) if isinstance(given, list) else FORMS[name](given)


def _one_of(*values: OptionValue) -> Domain:
    return Domain("one of " + ", ".join(repr(v) for v in values), lambda v: v in values, values)


def _between(low: int, high: int, unit: str = "") -> Domain:
    return Domain(f"from {low} to {high}{' ' + unit if unit else ''}", lambda v: low <= v <= high)


# One of some values; a number with a lower bound, or two; a string that matches a pattern, any string, or the name of a
# file or directory, which may exist only on the machine with the NPU.
FORMS: dict[str, Callable[..., Domain]] = {
    "one_of": _one_of,
    "at_least": lambda low: Domain(f"at least {low}", lambda v: v >= low),
    "between": _between,
    "matching": lambda pattern, text: Domain(text, lambda v: re.match(pattern, v) is not None),
    "text": lambda text: Domain(text, lambda v: True),
    "path": lambda text: Domain(text, lambda v: v != ""),
}
BOOL = Domain("True or False", lambda v: True, (True, False))
