"""What the user chose: which rules act, on which files, with how many processes.

The command line comes first, then the table ``[tool.convert_tf2npu]`` of the nearest pyproject.toml that
has one, from the source's folder upwards, then the defaults.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, NamedTuple

_FILE = "pyproject.toml"
_TABLE = "tool", "convert_tf2npu"


class ConfigError(Exception):
    """A configuration that cannot be used."""


class Config(NamedTuple):
    """What a pyproject.toml says; None where it says nothing.

    ``exclude`` holds patterns of files that stay as they are, relative to ``folder``.
    """

    folder: str = ""
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    jobs: int | None = None
    compat_v1: bool | None = None


def check_codes(codes: Iterable[str]) -> tuple[str, ...]:
    """Codes of rules, or their beginnings, in capitals.

    Raises:
        ValueError: there is no such rule.
    """
    from ..rules.registry import Registry  # here: who asks for help chooses no rules

    made = tuple(code.strip().upper() for code in codes if code.strip())
    known = [rule.code for rule in Registry().rules]
    for code in made:
        if not any(k.startswith(code) for k in known):
            raise ValueError("there is no rule {}; there are {}".format(code, ", ".join(known)))
    return made


def check_jobs(jobs: int) -> int:
    """A number of processes.

    Raises:
        ValueError: it is less than 1.
    """
    if jobs < 1:
        raise ValueError("%d is no number of processes; give 1 or more" % jobs)
    return jobs


def find_config(source: str) -> Config:
    """The configuration for a source: of its folder, or the nearest one above it.

    Raises:
        ConfigError: the nearest one cannot be used.
    """
    folder = os.path.realpath(source)
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    while True:
        path = os.path.join(folder, _FILE)
        if os.path.isfile(path):
            table = _read(path)
            if table:
                return _checked(path, table)
        if folder == os.path.dirname(folder):
            return Config()
        folder = os.path.dirname(folder)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
        if sys.version_info < (3, 11):
            from .toml_subset import read_table  # only where there is such a file

            return read_table(text, *_TABLE)
        import tomllib

        table = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError("{}: {}".format(path, getattr(error, "strerror", None) or error))
    for name in _TABLE:
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise ConfigError("{}: {} is no table".format(path, ".".join(_TABLE)))
    return table


def _checked(path: str, table: dict[str, Any]) -> Config:
    known = {"select": _codes, "ignore": _codes, "exclude": _strings, "jobs": _jobs, "compat-v1": _flag}
    found: dict[str, Any] = {}
    for key, value in table.items():
        where = "{}: [{}] {}".format(path, ".".join(_TABLE), key)
        if key not in known:
            import difflib  # only for this error

            close = difflib.get_close_matches(key, known, 1)
            raise ConfigError(
                "{}: there is no such key{}; there are {}".format(
                    where, f", did you mean {close[0]}?" if close else "", ", ".join(sorted(known))
                )
            )
        try:
            found[key.replace("-", "_")] = known[key](value)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}")
    return Config(os.path.dirname(path), **found)


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'{value!r} is no array of strings, as in ["a", "b"]')
    return tuple(value)


def _codes(value: Any) -> tuple[str, ...]:
    return check_codes(_strings(value))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _jobs(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no integer")
    return check_jobs(value)
