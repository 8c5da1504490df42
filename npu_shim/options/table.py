"""The tables of all options and of the rules between them, which options.json has, and lookups in them."""

from __future__ import annotations

import inspect
import json
import os

from npu_shim.options.option import REQUIRED, Option, option_from_fields
from npu_shim.options.rules import Rule

with open(os.path.join(os.path.dirname(__file__), "options.json"), encoding="utf-8") as _file:
    _CONTENT = json.load(_file)
TABLE: tuple[Option, ...] = tuple(map(option_from_fields, _CONTENT["options"]))
RULES: tuple[Rule, ...] = tuple(Rule(**row) for row in _CONTENT["rules"])
ARGUMENT_ORDER: tuple[str, ...] = tuple(_CONTENT["run_config_arguments"])
KEYS: dict[str, Option] = {row.name: row for row in TABLE if row.field is not None and row.name != "recompute"}


def find_option(name: str) -> Option | None:
    """Return the row of a parameter_map key, None if there is no such key."""
    return KEYS.get(name)


def options_by_argument(holder: str | None) -> dict[str, Option]:
    """Return the rows of a config class (None for NPURunConfig) by argument, in constructor order."""
    rows = {row.arg: row for row in TABLE if row.holder == holder and row.arg is not None}
    if holder is not None:
        return rows
    return {name: rows[name] for name in ARGUMENT_ORDER}


def constructor_signature(holder: str | None) -> inspect.Signature:
    """Return the signature of the constructor, with defaults, from the rows."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, kind, default=empty if row.estimator is REQUIRED else row.estimator)
            for name, row in options_by_argument(holder).items()
        ]
    )
