"""Tables of the profiler: rows of small ones, and columns of those with a row for each time an op runs.

A large table has millions of rows. With pyarrow they are read in columns; without it, or where pyarrow finds a row that
does not fit, Python's csv reads them one by one and skips what is broken.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import itertools
import operator
import sys
from typing import Any, Iterator, Sequence

import numpy as np

from npu_shim.profiles import columns
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.runs import Runs

_RATIOS = ("matrix", "vector", "memory", "memory of vectors")
_DIGITS = {1: 0, 1000: 3, 10**6: 6, 10**9: 9}  # of nanoseconds in a unit
_SAMPLE = 1000  # rows
_ROWS = 1 << 16
_KEPT = 1 << 16  # cells with numbers
_BLOCK = 1 << 21  # bytes; pyarrow reads several ahead
_BETWEEN = "\0"  # cells of a signature; no table has it


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Give a reader of the rows of a file."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        # Before Python 3.11, csv takes no NUL.
        yield csv.reader(stream if sys.version_info >= (3, 11) else (line.replace("\0", "") for line in stream))


def read_rows(path: str, kind: str, problems: dict[str, str]) -> tuple[list[dict[str, str]], dict[str, int]]:
    """Return the rows of a table, column -> cell, and the nanoseconds of the columns' units, 0 without one.

    The cells of columns with one name have spaces between them. What is wrong with the file goes to ``problems``.
    """
    rows: list[dict[str, str]] = []
    units: dict[str, int] = {}
    try:
        with _opened(path) as reader:
            heads: list[str] = next(reader, [])
            found = columns.places(heads, kind)
            units = {column: columns.unit(heads[places[0]]) for column, places in found.items()}
            for row in reader:
                if len(row) > max(places[0] for places in found.values()):
                    cells = {name: [row[n].strip() for n in places if n < len(row)] for name, places in found.items()}
                    rows.append({name: " ".join(several) for name, several in cells.items()})
                elif row:
                    problems[path] = f"row {reader.line_num} has {len(row)} of {len(heads)} cells and was skipped"
    except (OSError, ValueError, csv.Error) as error:
        problems[path] = str(error)
    return rows, units


def read_runs(path: str, kind: str, device: str, runs: Runs, problems: dict[str, str]) -> None:
    """Read the runs of ops in a table.

    Args:
        path: of the table.
        kind: "op_summary" or "task_time".
        device: of rows without one.
        runs: receives them.
        problems: receives what is wrong with the file.
    """
    try:
        with _opened(path) as reader:
            heads: list[str] = next(reader, [])
            found = {column: places[0] for column, places in columns.places(heads, kind).items()}
            start, duration = found["start"], found["duration"]
            rows = [row for row in itertools.islice(reader, _SAMPLE) if len(row) > max(start, duration)]
    except (OSError, ValueError, csv.Error) as error:
        problems[path] = str(error)
        return
    times = [[columns.number(row[place], np.nan) for place in (start, duration)] for row in rows]
    digits = [_digits(columns.unit(heads[start]), times), _DIGITS[columns.unit(heads[duration]) or 1000]]
    if not _in_columns(path, found, len(heads), digits, device, runs):
        _in_rows(path, found, digits, device, runs, problems)


def _digits(given: int, times: Sequence[Sequence[float]]) -> int:
    """Return the decimal places of nanoseconds in the column of starts.

    A start without a unit is in nanoseconds if starts lie far further apart than the ops run, and else in microseconds.

    Args:
        given: nanoseconds of the unit, 0 without one.
        times: start and duration of some runs.
    """
    if given:
        return _DIGITS[given]
    known = np.array(times).reshape(-1, 2)
    known = known[np.isfinite(known).all(axis=1)]
    apart = np.median(np.diff(np.sort(known[:, 0]))) if len(known) > 1 else 0
    return 0 if len(known) and apart > 100 * max(np.median(known[:, 1]), 1) else 3


def _in_rows(
    path: str, found: dict[str, int], digits: Sequence[int], device: str, runs: Runs, problems: dict[str, str]
) -> None:
    """Add runs that Python's csv reads. What cells say is kept for the next ones."""
    texts, ratios = ([found.get(column, -1) for column in names] for names in (Signature._fields, _RATIOS))
    start, duration, cells = found["start"], found["duration"], operator.itemgetter(*texts)
    number = functools.lru_cache(None)(lambda cells: runs.number(_stripped(cells, device)))
    took = functools.lru_cache(_KEPT)(lambda cell: columns.shifted(cell, digits[1]))
    ratio = functools.lru_cache(_KEPT)(lambda cell: columns.number(cell, np.nan))
    batch: list[Any] = []
    row: list[str] | None = []
    skipped = 0
    with _opened(path) as reader:
        next(reader)
        while row is not None:
            try:
                row = next(reader, None)
                if row:
                    row.append("")  # the cell of a column that the table does not have
                    times = columns.shifted(row[start], digits[0]), took(row[duration])
                    batch.append((number(cells(row)), *times, *[ratio(row[place]) for place in ratios]))
            except (ValueError, IndexError, csv.Error, OverflowError):
                skipped += 1
                problems[path] = f"{skipped} rows are broken and were skipped, the last one at line {reader.line_num}"
            if batch and (row is None or len(batch) == _ROWS):
                types = (np.int32, np.int64, np.int64, *[np.float32] * len(ratios))
                _add(runs, *map(np.array, zip(*batch), types))
                batch = []


def _add(runs: Runs, code: np.ndarray, start: np.ndarray, took: np.ndarray, *ratios: np.ndarray) -> None:
    matrix, vector, memory, of_vectors = ratios
    runs.add(code, start, took, (matrix, vector, np.fmax(memory, of_vectors)))


def _in_columns(path: str, found: dict[str, int], width: int, digits: Sequence[int], device: str, runs: Runs) -> bool:
    """Add runs that pyarrow reads. Return False, and add none, if it is missing or refuses the file."""
    try:
        import pyarrow
        from pyarrow import compute, csv as arrow
    except ImportError:
        return False
    names = {column: str(place) for column, place in found.items()}  # heads may repeat
    texts, times = [names.get(column) for column in Signature._fields], [names["start"], names["duration"]]
    types: dict[str, Any] = dict.fromkeys(filter(None, texts), pyarrow.string())
    types.update({name: pyarrow.decimal128(20 + places, places) for name, places in zip(times, digits)})
    types.update({names[column]: pyarrow.float32() for column in _RATIOS if column in names})
    numbers: dict[str, int] = {}
    mark = runs.mark()
    try:
        for batch in arrow.open_csv(
            path,
            read_options=arrow.ReadOptions(column_names=list(map(str, range(width))), skip_rows=1, block_size=_BLOCK),
            convert_options=arrow.ConvertOptions(
                include_columns=list(types), column_types=types, strings_can_be_null=False
            ),
        ):
            by_name = dict(zip(types, batch.columns))
            if any(by_name[name].null_count for name in times):
                raise pyarrow.ArrowInvalid("a time is missing")
            cells = [by_name[name] if name else "" for name in texts]
            joined = compute.binary_join_element_wise(*cells, _BETWEEN).dictionary_encode()
            found_texts = joined.dictionary.to_pylist()
            for text in found_texts:
                if text not in numbers:
                    if text.count(_BETWEEN) != len(texts) - 1:
                        raise pyarrow.ArrowInvalid("a cell has what stands between cells")
                    numbers[text] = runs.number(_stripped(text.split(_BETWEEN), device))
            code = np.array([numbers[text] for text in found_texts], np.int32)
            none = np.full(len(batch), np.nan, np.float32)
            ratios = [by_name[names[each]].to_numpy(False) if each in names else none for each in _RATIOS]
            _add(runs, code[joined.indices.to_numpy()], *[_unscaled(by_name[name]) for name in times], *ratios)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        runs.undo(mark)
        return False
    pyarrow.default_memory_pool().release_unused()
    return True


def _unscaled(column: Any) -> np.ndarray:
    """Return decimal numbers without their point; pyarrow keeps their lower 64 bits first."""
    numbers = np.frombuffer(column.buffers()[1], np.int64)[::2]
    return np.array(numbers[column.offset : column.offset + len(column)])


def _stripped(cells: Sequence[str], device: str) -> list[str]:
    of_row, *others = (cell.strip() for cell in cells)
    return [of_row or device, *others]
