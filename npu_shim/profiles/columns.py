"""The columns of the profiler's tables, by their names in CANN 5 to 9.

A row of columns.json gives the names of a column from the latest release to the first, the columns without which a
table cannot be read, and those with times. Names are compared in lower case and without their unit; CANN 5 and 6 wrote
no unit at times, CANN 7 added one, CANN 9 replaced "Block Dim" by "Block Num". PyTorch's and MindSpore's plugins write
op_summary as kernel_details, with shorter names.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_DIGITS = {"ns": 0, "us": 3, "ms": 6, "s": 9}  # of nanoseconds
_UNIT = re.compile(r"\s*\(([^()]*)\)\s*$")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "columns.json"), encoding="utf-8") as _stream:
    TABLES: dict[str, JsonObject] = {name: table for table in json.load(_stream) for name in table["files"]}
SMALL = [name for name, table in TABLES.items() if "start" not in table["columns"]]  # without rows of single runs


def places(heads: Sequence[str], kind: str) -> dict[str, list[int]]:
    """Return the places of the columns that a table has.

    Raises:
        ValueError: a column is missing without which the table cannot be read.
    """
    plain = [_UNIT.sub("", head.strip().lower()) for head in heads]
    found: dict[str, list[int]] = {}
    for column, spellings in TABLES[kind]["columns"].items():
        spelling = next((each for each in spellings if each in plain), None)
        if spelling is not None:
            found[column] = [place for place, head in enumerate(plain) if head == spelling]
    missing = [TABLES[kind]["columns"][column][0] for column in TABLES[kind]["needs"] if column not in found]
    if missing:
        wanted = ", ".join(map(repr, missing))
        raise ValueError(f"its first line has no column {wanted}. Export the profile again with msprof --export=on")
    return found


def digits(head: str, cell: str) -> int:
    """Return the decimal places of nanoseconds in a column of times.

    Without a unit a time is in microseconds if it has a decimal point, as in the exports of CANN 6, else in
    nanoseconds.
    """
    unit = _UNIT.search(head.strip().lower())
    return _DIGITS.get(unit.group(1) if unit else "", 3 * ("." in cell))


def number(text: str, otherwise: float = 0.0) -> float:
    """Return the finite number that a cell has; another value if it has none."""
    try:
        made = float(text)
    except ValueError:
        return otherwise
    return made if math.isfinite(made) else otherwise


def shifted(text: str, digits: int, below: int = 1 << 62) -> int:
    """Return a number with its decimal point moved to the right, to the last digit: a float has too few for a time.

    Raises:
        ValueError: it is no time.
    """
    whole, point, part = text.strip().partition(".")
    if not whole.isdigit() or (point and not part.isdigit()):
        made = int(round(float(text) * 10**digits))
    elif len(part) == digits:  # as in nearly all of millions of cells
        made = int(whole + part)
    else:
        made = int(whole + (part + "0" * digits)[:digits]) + (part[digits : digits + 1] >= "5")
    if not 0 <= made < below:
        raise ValueError(f"{text} is no time")
    return made


def time(head: str, cell: str) -> int:
    """Return the nanoseconds in a cell, 0 if it has no time."""
    try:
        return shifted(cell, digits(head, cell), 1 << 90)
    except (ValueError, OverflowError):
        return 0
