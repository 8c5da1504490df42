"""Tables of the profiler: rows of small ones, and columns of those with a row for each time an op runs.

A large table has millions of rows. With pyarrow they are read in columns, up to a block with a row that does not fit;
Python's csv reads the rest one by one and skips what is broken.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import importlib.util
import itertools
import operator
import sys
from typing import Any, Iterator

import numpy as np

from npu_shim.profiles import columns
from npu_shim.profiles.files import ProfileFile
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.runs import Runs

_RATIOS = ("matrix", "vector", "memory", "memory of vectors")
_KEPT = 1 << 16  # cells with numbers
_BLOCK = 1 << 21  # bytes; pyarrow reads several ahead
_BETWEEN = "\0"  # cells of a signature; no table has it
_SLOW = "about 4 times slower"
_ERRORS = (OSError, ValueError, csv.Error)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Give a reader of the rows of a file."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        # Before Python 3.11, csv takes no NUL.
        yield csv.reader(stream if sys.version_info >= (3, 11) else (line.replace("\0", "") for line in stream))


def read_rows(file: ProfileFile, problems: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows of a table, column -> text. A column of times has a list: nanoseconds for each head of its name.

    Each row has the file's "source", and its "device" if it has none. What is wrong goes to ``problems``.
    """
    rows: list[dict[str, Any]] = []
    times = columns.TABLES[file.kind].get("times", ())
    try:
        with _opened(file.path) as reader:
            heads: list[str] = next(reader, [])
            found = columns.places(heads, file.kind)
            for row in reader:
                cells = {name: [(heads[n], row[n]) for n in of if n < len(row)] for name, of in found.items()}
                if all(cells.values()):
                    made: dict[str, Any] = {name: of[0][1].strip() for name, of in cells.items()}
                    made.update((name, [columns.time(*each) for each in cells.get(name, ())]) for name in times)
                    rows.append({"source": file.source, "device": file.device, **made})
                elif row:
                    problems[file.path] = f"row {reader.line_num} has {len(row)} of {len(heads)} cells and was skipped"
    except _ERRORS as error:
        problems[file.path] = str(error)
    return rows


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
            first = [*next(reader, []), ""]
        found = {column: places[0] for column, places in columns.places(heads, kind).items()}
    except _ERRORS as error:
        problems[path] = str(error)
        return
    times = found["start"], found["duration"]
    digits = [columns.digits(heads[place], first[min(place, len(first) - 1)]) for place in times]
    done = _in_columns(path, found, len(heads), digits, device, runs, problems)
    if done is not None:
        runs.add_rows(_in_rows(path, found, digits, done, problems), device)


def _in_rows(
    path: str, found: dict[str, int], digits: list[int], done: int, problems: dict[str, str]
) -> Iterator[tuple[Any, ...]]:
    """Yield runs that Python's csv reads, without the first rows. What cells say is kept for the next ones."""
    texts, ratios = ([found.get(column, -1) for column in names] for names in (Signature._fields, _RATIOS))
    start, duration, cells = found["start"], found["duration"], operator.itemgetter(*texts)
    took = functools.lru_cache(_KEPT)(lambda cell: columns.shifted(cell, digits[1]))
    ratio = functools.lru_cache(_KEPT)(lambda cell: columns.number(cell, np.nan))
    row: list[str] | None = []
    skipped = 0
    with _opened(path) as reader:
        rows = itertools.islice(filter(None, reader), 1 + done, None)
        while row is not None:
            try:
                row = next(rows, None)
                if row:
                    row.append("")  # the cell of a column that the table does not have
                    times = columns.shifted(row[start], digits[0]), took(row[duration])
                    yield (cells(row), *times, *[ratio(row[place]) for place in ratios])
            except (ValueError, IndexError, csv.Error, OverflowError):
                skipped += 1
                problems[path] = f"{skipped} rows are broken and were skipped, the last one at line {reader.line_num}"


def _in_columns(
    path: str, found: dict[str, int], width: int, digits: list[int], device: str, runs: Runs, problems: dict[str, str]
) -> int | None:
    """Add runs that pyarrow reads. Return None at the end of the file, else the number of rows that are read."""
    done = 0
    try:
        import pyarrow
        from pyarrow import compute, csv as arrow
    except (ImportError, AttributeError) as error:
        if importlib.util.find_spec("pyarrow"):
            problems["pyarrow"] = (
                f"it is installed but cannot be imported: {error}. Python's csv reads the tables, {_SLOW}"
            )
        return done
    names = {column: str(place) for column, place in found.items()}  # heads may repeat
    texts, times = [names.get(column) for column in Signature._fields], [names["start"], names["duration"]]
    types: dict[str, Any] = dict.fromkeys(filter(None, texts), pyarrow.string())
    types.update({name: pyarrow.decimal128(20 + places, places) for name, places in zip(times, digits)})
    types.update({names[column]: pyarrow.float32() for column in _RATIOS if column in names})
    numbers: dict[str, int] = {}
    read = arrow.ReadOptions(column_names=list(map(str, range(width))), skip_rows=1, block_size=_BLOCK)
    convert = arrow.ConvertOptions(include_columns=list(types), column_types=types, strings_can_be_null=False)
    try:
        for batch in arrow.open_csv(path, read_options=read, convert_options=convert):
            by_name = dict(zip(types, batch.columns))
            cells = [by_name[name] if name else "" for name in texts]
            joined = compute.binary_join_element_wise(*cells, _BETWEEN).dictionary_encode()
            found_texts = joined.dictionary.to_pylist()
            if any(by_name[name].null_count for name in times) or any(
                text.count(_BETWEEN) != len(texts) - 1 for text in found_texts
            ):
                return done  # a time is missing, or a cell has what stands between cells
            numbers.update(
                (text, runs.number(text.split(_BETWEEN), device)) for text in found_texts if text not in numbers
            )
            code = np.array([numbers[text] for text in found_texts], np.int32)
            none = np.full(len(batch), np.nan, np.float32)
            ratios = [by_name[names[each]].to_numpy(False) if each in names else none for each in _RATIOS]
            start, took = (_unscaled(by_name[name]) for name in times)
            runs.add(code[joined.indices.to_numpy()], start, took, ratios)
            done += len(batch)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return done
    pyarrow.default_memory_pool().release_unused()
    return None


def _unscaled(column: Any) -> np.ndarray:
    """Return decimal numbers without their point; pyarrow keeps their lower 64 bits first."""
    numbers = np.frombuffer(column.buffers()[1], np.int64)[::2]
    return np.array(numbers[column.offset : column.offset + len(column)])
