"""Checks options when they are given: names, types, domains, and what goes together."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Mapping

from npu_shim.options.near import closest
from npu_shim.options.option import Option
from npu_shim.options.rules import RULES
from npu_shim.options.table import KEYS, find


def check_session_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks what was given to session_config.

    Args:
        options: name to value; None means "as if not given".
    Returns:
        The values to write, by parameter_map key.
    Raises:
        ValueError: unknown name, value not allowed, or options that contradict each other.
        TypeError: a value of the wrong type.
    """
    given = {name: value for name, value in options.items() if value is not None}
    checked = {}
    for name, value in given.items():
        row = find(name)
        if row is None:
            raise ValueError(
                f"Unknown NPU option {name!r} (value {value!r}).{closest(name, KEYS)} "
                "npu_shim.options.table.KEYS has all names."
            )
        warn_if_deprecated(row, name)
        checked[name] = check_value(row, value, name)
    check_together(checked)
    return checked


def check_value(row: Option, value: Any, name: str | None = None) -> Any:
    """Checks type and domain of one value.

    Args:
        row: the option.
        value: what the user gave.
        name: what the user called it; the row's name when None.
    Returns:
        The value as it is written.
    Raises:
        TypeError, ValueError: naming option, value, what is allowed and the next step.
    """
    name = name or row.name
    wanted = row.type
    if wanted is None:
        return value
    if row.numbers_too and type(value) is int:
        value = str(value)
    if wanted is str and isinstance(value, bytes):
        value = value.decode("utf-8")
    if wanted is int and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)  # numpy's integers too
    if wanted is bool and type(value).__name__ in ("int", "bool_", "bool") and value in (0, 1):
        value = bool(value)  # 0, 1 and numpy's bools
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise TypeError(
            f"{name}={value!r} is not allowed: it must be {_article(wanted)}, {row.allowed.text}, "
            f"but is {_article(type(value))}.{_instead(row, name, value)}"
        )
    if not row.allowed.accepts(value):
        near = closest(str(value), row.allowed.values) if wanted is str else ""
        raise ValueError(f"{name}={value!r} is not allowed: it must be {row.allowed.text}.{near} ({row.doc})")
    if row.content is not None:
        from npu_shim.options import precision_files

        getattr(precision_files, row.content)(value)
    return value


def check_together(given: Mapping[str, Any]) -> None:
    """Checks the options that are given against each other.

    Raises:
        ValueError: naming both options, and what to do.
    """
    for name in given:
        row = KEYS[name]
        if given[name] is False:
            continue  # a switch that is off excludes and needs nothing
        for other in row.excludes:
            if given.get(other) not in (None, False):
                raise ValueError(
                    f"{name}={given[name]!r} and {other}={given[other]!r} exclude each other: leave one of them out."
                )
        for other in row.requires:
            if given.get(other) is None:
                raise ValueError(
                    f"{name}={given[name]!r} needs {other}, which is not given: add {other} "
                    f"({KEYS[other].allowed.text}), or leave {name} out."
                )
    for rule in RULES:
        if rule.broken(given):
            raise ValueError(rule.text)


def warn_if_deprecated(row: Option, name: str) -> None:
    """One DeprecationWarning that names the replacement."""
    if row.deprecated:
        warnings.warn(f"NPU option {name} is deprecated: {row.deprecated}", DeprecationWarning, stacklevel=4)


def _article(kind: type) -> str:
    words = {bool: "a bool", int: "an int", str: "a str", float: "a float"}
    return words.get(kind, kind.__name__)


def _instead(row: Option, name: str, value: Any) -> str:
    """The next step where the intention is clear."""
    if row.type is str and isinstance(value, bool):
        value = str(value).lower()
    for allowed in row.allowed.values:
        if str(allowed) == str(value) or (
            isinstance(value, (bool, int)) and row.type in (bool, int) and allowed == value
        ):
            return f" Write {name}={allowed!r}."
    return ""
