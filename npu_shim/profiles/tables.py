"""Tables of the profiler: rows of small ones, and columns of those with a row for each time an op runs.

A large table has millions of rows. With pyarrow they are read in columns; without it, or where pyarrow finds a row that
does not fit, Python's csv reads them one by one and skips what is broken.
"""

from __future__ import annotations

import csv
from operator import itemgetter
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from npu_shim.profiles import columns

_TEXTS = (
    "device", "step", "model", "stream", "name", "type", "state", "core", "shapes", "types", "out_shapes", "out_types",
    "out_formats",
)  # fmt: skip
RATIOS = ("matrix", "vector", "memory")
_ROWS = 1 << 16
_BLOCK = 16 << 20  # bytes


class Signature(NamedTuple):
    """What the runs of an op have in common: the cells of their rows."""

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
    scale = {column: columns.unit(heads[found[column][0]]) for column in ("start", "duration")}
    made = _in_columns(path, heads, found, device, signatures)
    if made is None:
        made = list(_in_rows(path, found, len(heads), device, signatures, problems))
    return _in_nanoseconds(made, scale)


def _lines(stream: Any) -> Iterator[str]:
    return (line.replace("\0", "") for line in stream)


def _in_nanoseconds(made: list[Runs], scale: dict[str, int]) -> list[Runs]:
    """Return runs whose columns were read as microseconds in the unit of their heads.

    A start without a unit is in nanoseconds if the starts of a batch lie far further apart than the ops run.
    """
    scale = {"start": scale["start"], "duration": scale["duration"] or 1000}
    if not scale["start"] and made:
        apart = np.median(np.diff(np.sort(made[0].start))) if len(made[0].start) > 1 else 0
        scale["start"] = 1 if apart > 100 * max(np.median(made[0].duration), 1) else 1000
    if scale == {"start": 1000, "duration": 1000}:
        return made
    return [
        each._replace(
            start=each.start // 1000 * scale["start"] + each.start % 1000 * scale["start"] // 1000,
            duration=each.duration * scale["duration"] // 1000,
        )
        for each in made
    ]


def _in_rows(
    path: str,
    found: dict[str, list[int]],
    width: int,
    device: str,
    signatures: Signatures,
    problems: dict[str, str],
) -> Iterator[Runs]:
    """Yield runs that Python's csv reads."""
    texts = [found.get(column, [-1])[0] for column in _TEXTS]
    cells = itemgetter(*[place if place >= 0 else width for place in texts])
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
                at, took = _thousandths(row[start]), _thousandths(row[duration])
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


def _thousandths(text: str) -> int:
    """Return a number in thousandths, to the last digit: a time since 1970 does not fit a float."""
    whole, point, part = text.strip().partition(".")
    if whole.isdigit() and (part.isdigit() or not point):
        return int(whole) * 1000 + int((part + "000")[:3]) + (part[3:4] >= "5")
    return int(round(float(text) * 1000))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _in_columns(
    path: str, heads: Sequence[str], found: dict[str, list[int]], device: str, signatures: Signatures
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
    types.update({name: pyarrow.decimal128(24, 3) for name in times})
    types.update({name: pyarrow.float32() for name in ratios if name})
    made = []
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
                    _codes([by_name[name] if name else None for name in texts], len(batch), device, signatures),
                    *[_unscaled(by_name[name]) for name in times],
                    _ratios([by_name[name] if name else None for name in ratios], len(batch)),
                )
            )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError):
        return None
    return made


def _unscaled(column: Any) -> np.ndarray:
    """Return the thousandths of decimal numbers, whose lower 64 bits pyarrow keeps first."""
    numbers = np.frombuffer(column.buffers()[1], np.int64)[::2]
    return np.array(numbers[column.offset : column.offset + len(column)])


def _ratios(given: Sequence[Any], rows: int) -> np.ndarray:
    read = [
        np.full(rows, np.nan, np.float32) if each is None else each.to_numpy(zero_copy_only=False) for each in given
    ]
    return np.stack([read[0], read[1], np.fmax(read[2], read[3])]).astype(np.float32)


def _codes(given: Sequence[Any], rows: int, device: str, signatures: Signatures) -> np.ndarray:
    """Return the numbers of the signatures of rows, which are columns of dictionaries."""
    key, size = np.zeros(rows, np.int64), 1
    for column in given:
        if column is not None:
            several = max(len(column.dictionary), 1)
            if size > (1 << 62) // several:
                values, key = np.unique(key, return_inverse=True)
                size = len(values)
            key = key * several + column.indices.to_numpy(zero_copy_only=False)
            size *= several
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    kept = ["" if column is None else column.take(first).to_pylist() for column in given]
    numbers = [
        signatures.number(_cells([column[place] if column else "" for column in kept], device))
        for place in range(len(first))
    ]
    return np.array(numbers, np.int32)[inverse.reshape(-1)]
