"""Check options: names, types, domains and combinations."""

from __future__ import annotations

import numbers
import warnings
from typing import Mapping

from npu_shim._tensorflow.types import OptionValue
from npu_shim.options.near import did_you_mean
from npu_shim.options.option import Option
from npu_shim.options.table import KEYS, RULES, find_option


def checked_session_options(options: Mapping[str, OptionValue | None]) -> dict[str, OptionValue]:
    """Check the options of session_config.

    Args:
        options: name to value; None counts as not given.
    Returns:
        The values to write, by parameter_map key.
    Raises:
        ValueError: for an unknown name, a value that is not allowed, or options that contradict each other.
        TypeError: for a value of the wrong type.
    """
    given = {name: value for name, value in options.items() if value is not None}
    checked = {}
    for name, value in given.items():
        row = find_option(name)
        if row is None:
            raise ValueError(
                f"Unknown NPU option {name!r} (value {value!r}).{did_you_mean(name, KEYS)} "
                "List all with npu-shim options."
            )
        warn_if_deprecated(row, name)
        checked[name] = checked_value(row, value, name)
    check_combinations(checked)
    return checked


def checked_value(row: Option, value: OptionValue, name: str | None = None) -> OptionValue:
    """Check type and domain of a value.

    Args:
        row: the option.
        value: the user's value.
        name: the user's name for the option; the row's name if None.
    Returns:
        The value to write.
    Raises:
        TypeError, ValueError: with the option, the value, the allowed values and the fix.
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
            f"{name}={value!r} is not allowed: it must be {_type_with_article(wanted)}, {row.allowed.text}, "
            f"but is {_type_with_article(type(value))}.{_replacement_text(row, name, value)}"
        )
    if not row.allowed.accepts(value):
        near = did_you_mean(str(value), row.allowed.values) if wanted is str else ""
        raise ValueError(f"{name}={value!r} is not allowed: it must be {row.allowed.text}.{near} ({row.doc})")
    if row.content is not None:
        from npu_shim.options import precision_files

        getattr(precision_files, row.content)(value)
    return value


def check_combinations(options: Mapping[str, OptionValue]) -> None:
    """Check options against each other.

    Raises:
        ValueError: with both options and the fix.
    """
    for name in options:
        row = KEYS[name]
        if options[name] is False:
            continue  # a switch that is off excludes and requires nothing
        for other in row.excludes:
            if options.get(other) not in (None, False):
                raise ValueError(
                    f"{name}={options[name]!r} and {other}={options[other]!r} exclude each other. Remove one of them."
                )
        for other in row.requires:
            if options.get(other) is None:
                raise ValueError(
                    f"{name}={options[name]!r} needs {other}, which is not given. Add {other} "
                    f"({KEYS[other].allowed.text}), or remove {name}."
                )
    for rule in RULES:
        if rule.is_broken(options):
            raise ValueError(rule.text)


def warn_if_deprecated(row: Option, name: str) -> None:
    """Issue a DeprecationWarning that names the replacement."""
    if row.deprecated:
        warnings.warn(f"NPU option {name} is deprecated: {row.deprecated}", DeprecationWarning, stacklevel=4)


def _type_with_article(kind: type) -> str:
    words = {bool: "a bool", int: "an int", str: "a str", float: "a float"}
    return words.get(kind, kind.__name__)


def _replacement_text(row: Option, name: str, value: OptionValue) -> str:
    """Return the fix if the intention is clear, else an empty string."""
    if row.type is str and isinstance(value, bool):
        value = str(value).lower()
    for allowed in row.allowed.values:
        if str(allowed) == str(value) or (
            isinstance(value, (bool, int)) and row.type in (bool, int) and allowed == value
        ):
            return f" Write {name}={allowed!r}."
    return ""
