"""The forms of the files of a profile: the files of a folder, the columns of their tables, and what cells say.

A row of tables.json gives the files of a kind, and for a table the names of its columns from the latest release to the
first, the columns without which it cannot be read, and those with times. Kinds are read in the order of the rows. Names
of columns are compared in lower case and without their unit; CANN 5 and 6 wrote no unit at times, CANN 7 added one, and
CANN 9 replaced "Block Dim" by "Block Num". PyTorch's and MindSpore's plugins write op_summary as kernel_details, with
shorter names. A data base has tables, of which some may be missing, and queries. The collectives of some releases have
no device and no type; SQLite finds such a column in the query around.
"""

from __future__ import annotations

import json
import math
import os
import pkgutil
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Mapping, NamedTuple, Sequence

from npu_shim.dumps.files import paths_below


@dataclass(frozen=True)
class Table:
    """A kind of files.

    Attributes:
        files: their names.
        columns: the names of each column, the latest first.
        needs: the columns without which it cannot be read.
        times: the columns with times.
        tables, queries: of a data base.
    """

    files: Sequence[str]
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    needs: Sequence[str] = ()
    times: Sequence[str] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)


TABLES = {kind: Table(**row) for kind, row in json.loads(pkgutil.get_data(__name__, "tables.json") or b"").items()}
_DIGITS = {"ns": 0, "us": 3, "ms": 6, "s": 9}  # of nanoseconds
_UNIT = re.compile(r"\s*\(([^()]*)\)\s*$")
_FILE = re.compile(r"(\w+?)((?:_slice)?(?:_\d+)*?)(_\d{12,})?(\.csv|\.json|\.db)", re.I)  # name, numbers, time, ending
_KINDS = {name: kind for kind, table in TABLES.items() for name in table.files}
_INSIDE = re.compile(r"((^|/)(\.|(mindstudio|ascend)_profiler_output|summary|timeline|device_[0-9]+|host))+$", re.I)


class ProfileFile(NamedTuple):
    """A file of a profile.

    Attributes:
        path: of the file.
        kind: one of TABLES.
        source: the run that it belongs to, a folder below that of the profile.
        device: by its folder or name, empty if only its rows say it.
    """

    path: str
    kind: str
    source: str
    device: str


class TableRow(NamedTuple):
    """A row of a table without single runs.

    Attributes:
        source: of its file.
        device: of its cell, else of its file.
        cells: column -> text.
        times: column of times -> nanoseconds for each head of its name.
    """

    source: str
    device: str
    cells: dict[str, str]
    times: dict[str, list[int]]


def find_profile_files(folder: str) -> list[ProfileFile]:
    """Return the files of a folder, of each table that of the last export."""
    last_files: dict[tuple[str, str, str], ProfileFile] = {}
    for path in paths_below(folder):  # in the order of their times
        place, name = os.path.split(path)
        match = _FILE.fullmatch(name)
        stem, numbers, time, ending = match.groups("") if match else ("", "", "", "")
        kind = _KINDS.get(f"{stem}{ending}".lower())
        if kind:
            inside = os.path.relpath(place, folder)
            of_folder = re.findall(r"(?:^|/)device_([0-9]+)(?![^/])", inside)
            of_name = [] if time else re.findall(r"^_(\d+)_\d+(?:_\d+)?$", numbers)  # device, model: CANN 5 and 6
            device = [*of_folder[-1:], *of_name, ""][0]
            last_files[place, kind, numbers] = ProfileFile(path, kind, _INSIDE.sub("", inside), device)
    return list(last_files.values())


def rank_of_run(source: str, device: str) -> str:
    """Return the rank of a run, the device if its folder does not say it."""
    return (re.findall(r"rank_?(\d+)", source, re.I) or [device])[-1]


def column_places(heads: Sequence[str], kind: str) -> dict[str, list[int]]:
    """Return the places of the columns that a table has.

    Raises:
        ValueError: a column is missing without which the table cannot be read.
    """
    plain = [_UNIT.sub("", head.strip().lower()) for head in heads]
    columns = TABLES[kind].columns
    places_of = {
        column: [place for name in names for place, head in enumerate(plain) if head == name]
        for column, names in columns.items()
    }
    missing = [columns[column][0] for column in TABLES[kind].needs if not places_of[column]]
    if missing:
        raise ValueError(f"its first line has no column {', '.join(map(repr, missing))}")
    return {column: of_column for column, of_column in places_of.items() if of_column}


def nanosecond_digits(head: str, cell: str) -> int:
    """Return the decimal places of nanoseconds in a column of times.

    Without a unit a time is in microseconds if it has a decimal point, as in the exports of CANN 6, else in
    nanoseconds.
    """
    unit = _UNIT.search(head.strip().lower())
    return _DIGITS.get(unit.group(1) if unit else "", 3 * ("." in cell))


def finite_number(text: str, otherwise: float = 0.0) -> float:
    """Return the finite number that a cell has; another value if it has none."""
    try:
        value = float(text)
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise


def shift_decimal_point(text: str, digits: int, below: int = 1 << 62) -> int:
    """Return a number with its decimal point moved to the right, to the last digit: a float has too few for a time.

    Raises:
        ValueError, ArithmeticError: it is no time.
    """
    value = Decimal(text).scaleb(digits)
    if not 0 <= value < below:
        raise ValueError(f"{text} is no time")
    return int(value + Decimal("0.5"))


def nanoseconds_in_cell(head: str, cell: str) -> int:
    """Return the nanoseconds in a cell, 0 if it has no time."""
    try:
        return shift_decimal_point(cell, nanosecond_digits(head, cell), 1 << 90)
    except (ValueError, ArithmeticError):
        return 0
