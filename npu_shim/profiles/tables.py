"""Tables of the profiler: rows of small ones, and columns of those with a row for each time an op runs.

A large table has millions of rows. With pyarrow they are read in columns, up to a block with a row that does not fit;
Python's csv reads the rest one by one and skips what is broken.
"""

from __future__ import annotations

import csv
import itertools
import operator
from decimal import Decimal
from typing import Callable, Iterator, TypeVar

import numpy as np

from npu_shim._tensorflow.types import Value
from npu_shim.profiles import table_forms
from npu_shim.profiles.devices import Profile
from npu_shim.profiles.op_kinds import Signature
from npu_shim.profiles.runs import BETWEEN
from npu_shim.profiles.table_forms import ProfileFile, TableRow

_Row = TypeVar("_Row")
_BLOCK = 1 << 21  # bytes; pyarrow reads several ahead
_TIMES = ("start", "duration")
_RATIOS = ("matrix", "vector", "memory", "memory of vectors")


def _parse_rows(
    file: ProfileFile, profile: Profile, make: Callable[[list[str]], _Row], after: int = 0
) -> Iterator[_Row]:
    """Yield what is made of the rows after some. A row of which nothing can be made is named and skipped."""
    row: list[str] | None = []
    skipped = 0
    with open(file.path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        reader = csv.reader(stream)
        rows = itertools.islice(filter(None, reader), after, None)
        while row is not None:
            try:
                row = next(rows, None)
                if row:
                    yield make(row)
            except (ValueError, IndexError, csv.Error, ArithmeticError):
                skipped += 1
                profile.problems[file.path] = (
                    f"{skipped} rows are broken and skipped, the last at line {reader.line_num}"
                )


def read_rows(file: ProfileFile, profile: Profile) -> None:
    """Read the rows of a table."""
    heads = next(_parse_rows(file, profile, list), [])
    columns = table_forms.column_places(heads, file.kind)

    def make(row: list[str]) -> TableRow:
        cells = {name: row[places[0]].strip() for name, places in columns.items()}
        times = {
            name: [
                table_forms.nanoseconds_in_cell(heads[place], row[place])
                for place in columns.get(name, ())
                if place < len(row)
            ]
            for name in table_forms.TABLES[file.kind].times
        }
        return TableRow(file.source, cells.get("device", file.device), cells, times)

    profile.rows[file.kind].extend(_parse_rows(file, profile, make, 1))


def read_runs(file: ProfileFile, profile: Profile) -> None:
    """Read the runs of ops in a table."""
    rows = _parse_rows(file, profile, list)
    heads, first = next(rows, []), next(rows, [])
    columns = {column: places[0] for column, places in table_forms.column_places(heads, file.kind).items()}
    start, duration = columns["start"], columns["duration"]
    digits = [table_forms.nanosecond_digits(heads[place], (first + heads)[place]) for place in (start, duration)]
    texts, ratios = ([columns.get(column, -1) for column in names] for names in (Signature._fields, _RATIOS))
    cells = operator.itemgetter(*texts)

    def make(row: list[str]) -> tuple[Value, ...]:
        row.append("")  # the cell of a column that the table does not have
        times = (
            table_forms.shift_decimal_point(row[start], digits[0]),
            table_forms.shift_decimal_point(row[duration], digits[1]),
        )
        return (cells(row), *times, *[table_forms.finite_number(row[place], np.nan) for place in ratios])

    done = _read_columns(file, profile, columns, len(heads), digits)
    if done is not None:
        profile.runs[file.source].add_rows(_parse_rows(file, profile, make, 1 + done), file.device)


def _read_columns(
    file: ProfileFile, profile: Profile, place_of: dict[str, int], width: int, digits: list[int]
) -> int | None:
    """Add runs that pyarrow reads. Return None at the end of the file, else the number of rows that are read."""
    done, runs = 0, profile.runs[file.source]
    try:
        import pyarrow
        from pyarrow import compute, csv as arrow
    except (ImportError, AttributeError) as error:
        if not isinstance(error, ModuleNotFoundError):
            profile.problems["pyarrow"] = (
                f"cannot be imported: {error}. Python's csv reads tables, about 4 times slower"
            )
        return done
    columns = {place: column for column, place in place_of.items()}
    names = [columns.get(place, str(place)) for place in range(width)]  # heads may repeat
    types = {**dict.fromkeys(Signature._fields, pyarrow.string()), **dict.fromkeys(_RATIOS, pyarrow.float32())}
    types.update((name, pyarrow.decimal128(20 + places, places)) for name, places in zip(_TIMES, digits))
    read = arrow.ReadOptions(column_names=names, skip_rows=1, block_size=_BLOCK)
    convert = arrow.ConvertOptions(column_types=types, include_columns=list(types), include_missing_columns=True)
    try:
        for batch in arrow.open_csv(file.path, read_options=read, convert_options=convert):
            cells = dict(zip(types, batch.columns))
            texts = [cells[column] for column in Signature._fields]
            joined = compute.binary_join_element_wise(*texts, BETWEEN, null_handling="replace").dictionary_encode()
            code = np.array(
                [runs.number_of_signature(text, file.device) for text in joined.dictionary.to_pylist()], np.int32
            )
            times = [compute.multiply(cells[name], Decimal(10**places)) for name, places in zip(_TIMES, digits)]
            start, took = (time.cast(pyarrow.int64()).to_numpy() for time in times)
            ratios = [cells[column].to_numpy(False) for column in _RATIOS]
            runs.add_runs(code[joined.indices.to_numpy()], start, took, ratios)
            done += len(batch)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return done
    pyarrow.default_memory_pool().release_unused()
    return None
