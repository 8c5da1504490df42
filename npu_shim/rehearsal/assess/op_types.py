"""Tables of operator types by what they do, from ``op_types.json``: names, or regular expressions for whole names."""

from __future__ import annotations

import json
import os
import re
from typing import Pattern

_TABLE = os.path.splitext(os.path.abspath(__file__))[0] + ".json"


def op_types_in_table(table: str) -> frozenset[str]:
    """Return the operator types of a table of names."""
    return frozenset(_words_of_table(table))


def op_type_pattern(table: str) -> Pattern[str]:
    """Return the pattern that matches the operator types of a table of regular expressions."""
    return re.compile(f"^({'|'.join(_words_of_table(table))})$")


def _words_of_table(table: str) -> list[str]:
    with open(_TABLE, encoding="utf-8") as stream:
        return " ".join(json.load(stream)[table]).split()
