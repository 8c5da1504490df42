"""Read rank tables of every dialect.

``read(path)`` raises an error if a table cannot describe a job. ``examine(text)``
returns every problem, warnings included, and raises no error.
"""

from __future__ import annotations

import functools
import os

from npu_shim.distributed.ranktable import lenient_json
from npu_shim.distributed.ranktable.dialects import read_table_data
from npu_shim.distributed.ranktable.model import Problem, RankTable, RankTableError, only_errors
from npu_shim.distributed.ranktable.validate import table_problems


def read_with_problems(text: str, product: str | None = None) -> tuple[RankTable | None, tuple[Problem, ...]]:
    """Read a rank table and find its problems.

    Args:
        text: of the file.
        product: one of PRODUCTS, whose rules apply, or BY_VERSION for that of the table's version; None for the CPU.
    Returns:
        (table, problems). The table is None if the text does not describe one; comments and extra commas are accepted.
        A problem is an 'error' if no runtime accepts it, and a 'warning' if only NPUs reject it.
    """
    data, syntax = lenient_json.load_lenient_json(text)
    if data is None and syntax:
        return None, syntax
    reading = read_table_data(data)
    problems = (*reading.problems, *table_problems(reading, product))
    return None if only_errors(problems) else reading.table, (*syntax, *problems)


def parse_table(text: str, name: str = "rank table") -> RankTable:
    """Read the text of a rank table.

    Args:
        text: JSON, of any dialect.
        name: name of the table in errors.
    Returns:
        The table.
    Raises:
        RankTableError: it is not JSON, or does not describe a job.
    """
    table, problems = read_with_problems(text)
    wrong = only_errors(problems)
    if table is None or wrong:
        raise RankTableError(name, wrong)
    return table


def read_table(path: str) -> RankTable:
    """Read a file; an unchanged file is parsed once.

    Raises:
        OSError: the file cannot be read.
        RankTableError: it has no valid rank table.
    """
    status = os.stat(path)
    return _read_version(path, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev)


@functools.lru_cache(maxsize=4)
def _read_version(path: str, *version: int) -> RankTable:
    return parse_table(read_table_text(path), path)


def read_table_text(path: str) -> str:
    """Return the text of a file, with or without a byte order mark.

    Raises:
        OSError: the file cannot be read.
        RankTableError: it is not text.
    """
    try:
        with open(path, encoding="utf-8-sig") as stream:
            return stream.read()
    except UnicodeDecodeError as error:
        raise RankTableError(path, (Problem("$", f"the file is not text ({error})", "Save it as UTF-8."),)) from error
