"""The configuration in pyproject.toml.

The command line overrides the table ``[tool.convert_tf2npu]``. The table comes from the nearest pyproject.toml that has
one, from the folder of the source upwards.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, NamedTuple, Sequence

from ..files.errors import UsageError
from ..files.message import Message
from .usage import closest_name

MOST_JOBS = 1024
_FILE = "pyproject.toml"
_TABLE = "tool", "convert_tf2npu"


class Config(NamedTuple):
    """The values of a pyproject.toml; None for those that it does not set.

    ``exclude`` has patterns of files that are not converted, ``tf_1`` and ``tf_2`` of files that speak TensorFlow 1 and
    TensorFlow 2. All are relative to ``folder``.
    """

    folder: str = ""
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    jobs: int | None = None
    compat_v1: bool | None = None
    tf: str | None = None
    tf_1: tuple[str, ...] | None = None
    tf_2: tuple[str, ...] | None = None


def checked_rule_codes(codes: Iterable[str]) -> tuple[str, ...]:
    """Return codes of rules, or their beginnings, in capitals.

    Raises:
        ValueError: there is no such rule.
    """
    from ..rules.registry import Registry  # only here: --help needs no rules

    wanted = tuple(code.strip().upper() for code in codes if code.strip())
    known = [rule.code for rule in Registry().rules]
    for code in wanted:
        if not any(k.startswith(code) for k in known):
            raise ValueError(unknown_rule_error(code, known))
    return wanted


def unknown_rule_error(code: str, known: Sequence[str]) -> str:
    """Return the error for a code that no rule has."""
    import difflib  # only here: it takes longer to load than the rest of the command's arguments

    likeness = {rule: difflib.SequenceMatcher(None, code.upper(), rule).ratio() for rule in known}
    near = sorted((rule for rule in known if likeness[rule] > 0.5), key=lambda rule: (-likeness[rule], rule))[:3]
    advice = Message("Did you mean {0}?", ", ".join(near)) if near else "List the rules with --list-rules"
    return Message("there is no rule {0}. {1}", code, advice)


def checked_job_count(jobs: int) -> int:
    """Return a number of processes.

    Raises:
        ValueError: it is less than 1, or more than a machine has processors.
    """
    if not 1 <= jobs <= MOST_JOBS:
        raise ValueError(Message("{0} is not a number of processes. Give 1 to {1}", jobs, MOST_JOBS))
    return jobs


def read_nearest_config(source: str) -> Config:
    """Return the configuration of the folder of a source, or of the nearest one above it.

    Raises:
        UsageError: it is invalid.
    """
    folder = os.path.realpath(source)
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    while True:
        path = os.path.join(folder, _FILE)
        if os.path.isfile(path):
            table = _read_table(path)
            if table:
                return _config_of_table(path, table)
        if folder == os.path.dirname(folder):
            return Config()
        folder = os.path.dirname(folder)


def _read_table(path: str) -> dict[str, object]:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            text = stream.read()
        if sys.version_info < (3, 11):
            from .toml_subset import read_table  # only before Python 3.11

            return read_table(text, *_TABLE)
        import tomllib

        table = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError("{0}: {1}", path, getattr(error, "strerror", None) or error)
    for name in _TABLE:
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise UsageError("{0}: {1} is not a table", path, ".".join(_TABLE))
    return table


def _config_of_table(path: str, table: dict[str, object]) -> Config:
    known = {
        **{
            "select": _checked_code_list,
            "ignore": _checked_code_list,
            "exclude": _checked_strings,
            "jobs": _checked_jobs,
            "compat-v1": _checked_boolean,
        },
        **{"tf": _checked_version, "tf-1": _checked_strings, "tf-2": _checked_strings},
    }
    values: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{path}: [{'.'.join(_TABLE)}] {key}"
        if key not in known:
            close = closest_name(key, known)
            hint = (
                Message("Did you mean {0}?", close) if close else Message("The keys are {0}", ", ".join(sorted(known)))
            )
            raise UsageError("{0}: unknown key. {1}", where, hint)
        try:
            values[key.replace("-", "_")] = known[key](value)
        except ValueError as error:
            raise UsageError("{0}: {1}", where, error)
    return Config(os.path.dirname(path), **values)


def _checked_strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(Message('{0} is not an array of strings, as in ["a", "b"]', repr(value)))
    return tuple(value)


def _checked_code_list(value: object) -> tuple[str, ...]:
    return checked_rule_codes(_checked_strings(value))


def _checked_boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(Message("{0} is neither true nor false", repr(value)))
    return value


def _checked_version(value: object) -> str:
    if str(value) not in ("1", "2"):
        raise ValueError(Message("{0} is not a version of TensorFlow. Write 1 or 2", repr(value)))
    return str(value)


def _checked_jobs(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(Message("{0} is not an integer", repr(value)))
    return checked_job_count(value)
