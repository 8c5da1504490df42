"""Tables of the profiler: rows of small ones, and columns of those with a row for each time an op runs.

A large table has millions of rows. With pyarrow they are read in columns; without it, or where pyarrow finds a row that
does not fit, Python's csv reads them one by one and skips what is broken.
"""

from __future__ import annotations

import csv
import itertools
from operator import itemgetter
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from npu_shim.profiles import columns

_TEXTS = (
    "device", "step", "model", "stream", "name", "type", "state", "core", "shapes", "types", "out_shapes", "out_types",
    "out_formats",
)  # fmt: skip
RATIOS = ("matrix", "vector", "memory")
_DIGITS = {1: 0, 1000: 3, 10**6: 6, 10**9: 9}  # of nanoseconds in a unit
_SAMPLE = 1000  # rows
_ROWS = 1 << 16
_BLOCK = 8 << 20  # bytes


class Signature(NamedTuple):
    """Cells that are equal in many rows: those of one op with one shape."""

    device: str = ""
    step: str = ""
    model: str = ""
    stream: str = ""
    name: str = ""
    type: str = ""
    state: str = ""
    core: str = ""
    shapes: str = ""
    types: str = ""
    out_shapes: str = ""
    out_types: str = ""
    out_formats: str = ""


class Runs(NamedTuple):
    """Runs of ops in columns.

    Attributes:
        code: number of the signature.
        start, duration: nanoseconds.
        ratios: use of the matrix unit, the vector unit and memory, NaN where it is not known; a row for each.
    """

    code: np.ndarray
    start: np.ndarray
    duration: np.ndarray
    ratios: np.ndarray


class Signatures:
    """All signatures of a profile, by number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}

    def number(self, cells: tuple[str, ...]) -> int:
        """Return the number of a signature."""
        return self.numbers.setdefault(cells, len(self.numbers))

    def all(self) -> list[Signature]:
        """Return the signatures in order."""
        return [Signature(*cells) for cells in self.numbers]


def read_rows(path: str, kind: str, problems: dict[str, str]) -> Iterator[dict[str, list[str]]]:
    """Yield the rows of a table, column -> cells. What is wrong with the file goes to ``problems``."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
            reader = csv.reader(_lines(stream))
            heads = next(reader, [])
            found = columns.places(heads, kind)
            for row in reader:
                if len(row) > max(place[0] for place in found.values()):
                    yield {
                        column: [row[place].strip() for place in places if place < len(row)]
                        for column, places in found.items()
                    }
                elif row:
                    problems[path] = f"row {reader.line_num} has {len(row)} of {len(heads)} cells and was skipped"
    except (OSError, ValueError, csv.Error) as error:
        problems[path] = str(error)


def units(path: str, kind: str) -> dict[str, int]:
    """Return the nanoseconds of the units of a table's columns, 0 for a column without one."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        heads = next(csv.reader(_lines(stream)), [])
    return {column: columns.unit(heads[place[0]]) for column, place in columns.places(heads, kind).items()}


def read_runs(path: str, kind: str, device: str, signatures: Signatures, problems: dict[str, str]) -> list[Runs]:
    """Return the runs of ops in a table.

    Args:
        path: of the table.
        kind: "op_summary" or "task_time".
        device: of rows without one.
        signatures: receives new ones.
        problems: receives what is wrong with the file.
    """
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
            heads = next(csv.reader(_lines(stream)), [])
        found = columns.places(heads, kind)
    except (OSError, ValueError, csv.Error) as error:
        problems[path] = str(error)
        return []
    digits = [_digits(path, heads, found), _DIGITS[columns.unit(heads[found["duration"][0]]) or 1000]]
    made = _in_columns(path, heads, found, digits, device, signatures)
    return list(_in_rows(path, heads, found, digits, device, signatures, problems)) if made is None else made


def _lines(stream: Any) -> Iterator[str]:
    return (line.replace("\0", "") for line in stream)


def _digits(path: str, heads: Sequence[str], found: dict[str, list[int]]) -> int:
    """Return the decimal places of nanoseconds in the column of starts.

    A start without a unit is in nanoseconds if starts lie far further apart than the ops run, and else in microseconds.
    """
    start, duration = found["start"][0], found["duration"][0]
    given = columns.unit(heads[start])
    if given:
        return _DIGITS[given]
    times = []
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        for row in itertools.islice(csv.reader(_lines(stream)), 1, _SAMPLE):
            if len(row) > max(start, duration):
                times.append([_number(row[start]), _number(row[duration])])
    known = np.array(times).reshape(-1, 2)
    known = known[np.isfinite(known).all(axis=1)]
    apart = np.median(np.diff(np.sort(known[:, 0]))) if len(known) > 1 else 0
    return 0 if len(known) and apart > 100 * max(np.median(known[:, 1]), 1) else 3


def _in_rows(
    path: str,
    heads: Sequence[str],
    found: dict[str, list[int]],
    digits: Sequence[int],
    device: str,
    signatures: Signatures,
    problems: dict[str, str],
) -> Iterator[Runs]:
    """Yield runs that Python's csv reads."""
    texts = [found.get(column, [-1])[0] for column in _TEXTS]
    cells = itemgetter(*[place if place >= 0 else len(heads) for place in texts])
    start, duration = found["start"][0], found["duration"][0]
    ratios = [found.get(column, [-1])[0] for column in (*RATIOS, "memory of vectors")]
    batch: list[Any] = []
    skipped = last = 0
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        reader = csv.reader(_lines(stream))
        next(reader)
        while True:
            try:
                row = next(reader)
                last = reader.line_num
                if not row:
                    continue
                row.append("")
                at, took = _nanoseconds(row[start], digits[0]), _nanoseconds(row[duration], digits[1])
                code = signatures.number(_cells(cells(row), device))
                batch.append((code, at, took, *[_number(row[place]) if place >= 0 else np.nan for place in ratios]))
            except StopIteration:
                break
            except (ValueError, IndexError, csv.Error, OverflowError):
                skipped += 1
                problems[path] = f"{skipped} rows are broken and were skipped, the last one at line {max(last, 1)}"
            if len(batch) == _ROWS:
                yield _runs(batch)
                batch = []
    if batch:
        yield _runs(batch)


def _cells(cells: Sequence[str], device: str) -> tuple[str, ...]:
    first = cells[0].strip() or device
    return (first, *(cell.strip() for cell in cells[1:]))


def _runs(batch: Sequence[Any]) -> Runs:
    code, start, duration, *ratios = zip(*batch)
    matrix, vector, memory, of_vectors = (np.array(each, np.float32) for each in ratios)
    return Runs(
        np.array(code, np.int32),
        np.array(start, np.int64),
        np.array(duration, np.int64),
        np.stack([matrix, vector, np.fmax(memory, of_vectors)]),
    )


def _nanoseconds(text: str, digits: int) -> int:
    """Return a number without its decimal point, to the last digit: a time since 1970 does not fit a float.

    Raises:
        ValueError: it is no time.
    """
    whole, point, part = text.strip().partition(".")
    if whole.isdigit() and (part.isdigit() or not point):
        made = int(whole + (part + "0" * digits)[:digits]) + (part[digits : digits + 1] >= "5")
    else:
        made = int(round(float(text) * 10**digits))
    if not 0 <= made < 1 << 62:
        raise ValueError(f"{text} is no time")
    return made


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _in_columns(
    path: str,
    heads: Sequence[str],
    found: dict[str, list[int]],
    digits: Sequence[int],
    device: str,
    signatures: Signatures,
) -> list[Runs] | None:
    """Return runs that pyarrow reads, None if it is missing or refuses the file."""
    try:
        import pyarrow
        from pyarrow import csv as arrow
    except ImportError:
        return None
    names = [f"{place}" for place in range(len(heads))]  # heads may repeat
    texts = [str(found[column][0]) if column in found else "" for column in _TEXTS]
    times = [str(found[column][0]) for column in ("start", "duration")]
    ratios = [str(found[column][0]) if column in found else "" for column in (*RATIOS, "memory of vectors")]
    types: dict[str, Any] = {name: pyarrow.dictionary(pyarrow.int32(), pyarrow.string()) for name in texts if name}
    types.update({name: pyarrow.decimal128(20 + places, places) for name, places in zip(times, digits)})
    types.update({name: pyarrow.float32() for name in ratios if name})
    made, codes = [], _Codes(device, signatures)
    try:
        for batch in arrow.open_csv(
            path,
            read_options=arrow.ReadOptions(column_names=names, skip_rows=1, block_size=_BLOCK),
            convert_options=arrow.ConvertOptions(
                include_columns=list(types), column_types=types, strings_can_be_null=False
            ),
        ):
            by_name = {name: batch.column(place) for place, name in enumerate(types)}
            if any(by_name[name].null_count for name in times):
                return None
            made.append(
                Runs(
                    codes.of([by_name[name] if name else None for name in texts], len(batch)),
                    _unscaled(by_name[times[0]]),
                    _unscaled(by_name[times[1]]),
                    _ratios([by_name[name] if name else None for name in ratios], len(batch)),
                )
            )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return None
    pyarrow.default_memory_pool().release_unused()
    return made


def _unscaled(column: Any) -> np.ndarray:
    """Return decimal numbers without their point; pyarrow keeps their lower 64 bits first."""
    numbers = np.frombuffer(column.buffers()[1], np.int64)[::2]
    return np.array(numbers[column.offset : column.offset + len(column)])


def _ratios(given: Sequence[Any], rows: int) -> np.ndarray:
    read = [
        np.full(rows, np.nan, np.float32) if each is None else each.to_numpy(zero_copy_only=False) for each in given
    ]
    return np.stack([read[0], read[1], np.fmax(read[2], read[3])]).astype(np.float32)


class _Codes:
    """Numbers of signatures of rows whose cells are dictionaries of texts, which differ from batch to batch."""

    def __init__(self, device: str, signatures: Signatures) -> None:
        self._device, self._signatures = device, signatures
        self._texts: list[dict[str, int]] = [{} for _ in _TEXTS]
        self._known: dict[bytes, int] = {}

    def of(self, given: Sequence[Any], rows: int) -> np.ndarray:
        """Return the numbers of a batch; None is a column that the table does not have."""
        key, size, cells = np.zeros(rows, np.int64), 1, []
        for column, texts in zip(given, self._texts):
            if column is None:
                cells.append(np.full(rows, texts.setdefault("", 0), np.int32))
                continue
            numbers = [texts.setdefault(text, len(texts)) for text in column.dictionary.to_pylist()]
            indices = column.indices.to_numpy(zero_copy_only=False)
            cells.append(np.array(numbers, np.int32)[indices])
            if size > (1 << 62) // max(len(numbers), 1):
                values, key = np.unique(key, return_inverse=True)
                size = len(values)
            key = key * len(numbers) + indices
            size *= len(numbers)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        kept = np.stack([each[first] for each in cells], 1)
        raw, width = kept.tobytes(), 4 * len(cells)
        found = []
        for place in range(len(first)):
            cell = raw[place * width : (place + 1) * width]
            number = self._known.get(cell)
            if number is None:
                row = [column[first[place]].as_py() if column is not None else "" for column in given]
                number = self._known[cell] = self._signatures.number(_cells(row, self._device))
            found.append(number)
        return np.array(found, np.int32)[inverse.reshape(-1)]
