"""The files of a dump folder: their names, and the folders they are in.

The engine writes ``{time}/{device}/{model}/{model id}/{iteration}/TYPE.NAME.TASK.STREAM.TIMESTAMP``, in some releases
without the stream, and for parts of an operator with ``.TASKTYPE.CONTEXT.THREAD.DEVICE`` behind it. A name of more
than 255 characters is a number, and ``mapping.csv`` of the folder says which name it stands for.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import os
import re
import sqlite3
from dataclasses import dataclass
from typing import Dict, Iterator, Mapping

MAPPING = "mapping.csv"
Problems = Dict[str, str]  # path of a file -> what is wrong with it
_VALUES = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_ERRORS = (*_VALUES, OSError, RecursionError, csv.Error, sqlite3.Error)
OTHER = (".txt", ".pbtxt", ".json", ".csv", ".npy", ".log", ".html", ".pb", ".om")  # files beside dumps
OP_DEBUG = "Opdebug"  # type of reports of overflows
_JSON = re.compile(rf"({OP_DEBUG}\..*)\.output\.[0-9]+\.json")  # that a tool of the vendor makes of a report
# Type, name, task, stream, time, context and thread; N is a number. Only names with a stream have the last two.
_NAME = re.compile(r"([^.]*)\.([^.]*)\.(N)(?:\.(N))?\.(N)(?(4)(?:\.N\.(N)\.(N)(?:\.N)?)?)".replace("N", "[0-9]{1,19}"))


@dataclass(frozen=True)
class DumpFile:
    """A dump file by its name.

    Attributes:
        path: of the file.
        op_type, op_name: with ``_`` for ``/`` and ``.``.
        task, stream, context, thread: on the device; -1 for those that the name does not have.
        time: when it was written, a number that grows.
        step: iteration by the folder; -1 in another folder.
        run: the folders above, and the device; empty in another folder.
    """

    path: str = ""
    op_type: str = ""
    op_name: str = ""
    task: int = -1
    stream: int = -1
    time: int = -1
    context: int = -1
    thread: int = -1
    step: int = -1
    run: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Problem:
    """A file with a problem."""

    file: str
    problem: str


def find_dump_files_and_problems(folder: str) -> tuple[list[DumpFile], Problems]:
    """Return the dump files of a folder and what is wrong with other files, by path."""
    dump_files: list[DumpFile] = []
    problems: Problems = {}
    for place, paths in itertools.groupby(paths_below(folder), os.path.dirname):
        full = read_name_mapping(place, problems)
        for path in paths:
            name = os.path.basename(path)
            file = parse_dump_name(path, full.get(name, name), folder)
            if file:
                dump_files.append(file)
            elif name.isdigit():
                problems[path] = f"its number has no row in {MAPPING}. Copy that file along"
            elif not name.lower().endswith(OTHER) and not name.startswith("."):
                problems[path] = "its name is not that of a dump, TYPE.NAME.TASK.STREAM.TIMESTAMP. Move it away"
    return sorted(dump_files, key=lambda file: (file.step, file.time, file.task)), problems


def last_operator_dumps_by_step(dump_files: list[DumpFile]) -> dict[int, list[DumpFile]]:
    """Return the dumps of operators of the last run on the first device by step."""
    dump_files = [file for file in dump_files if file.op_type != OP_DEBUG]
    last = max((file.run[0] for file in dump_files), default="")
    run = min((file.run for file in dump_files if file.run[0] == last), default=None)
    members = [file for file in dump_files if file.run == run]
    return {step: list(group) for step, group in itertools.groupby(members, lambda file: file.step)}


def paths_below(folder: str, endings: str | tuple[str, ...] = "") -> Iterator[str]:
    """Return the paths of the files with an ending, in order."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(endings))


def read_name_mapping(folder: str, problems: Problems) -> dict[str, str]:
    """Return the rows of a folder's mapping.csv, number -> name; what is wrong with it is added to ``problems``."""
    path, names = os.path.join(folder, MAPPING), {}
    if os.path.exists(path):
        with collect_problem(problems, path, "it is no table of two columns: {}. Copy the file again"):
            with open(path, encoding="utf-8", newline="") as stream:
                names = {number: name for number, name in filter(None, csv.reader(stream))}
    return names


def parse_dump_name(path: str, name: str, folder: str) -> DumpFile | None:
    """Return a dump file of a folder by its name, None for another name.

    Args:
        path: of the file.
        name: that it stands for.
        folder: of all dumps.
    """
    match = _NAME.fullmatch(_JSON.sub(r"\1", name))
    if not match:
        return None
    task, stream, time, context, thread = (-1 if number is None else int(number) for number in match.groups()[2:])
    folders = os.path.relpath(path, folder).split(os.sep)[:-1]
    step = int(folders[-1]) if folders and folders[-1].isdigit() else -1
    run = os.sep.join(folders[:-4]), folders[-4] if len(folders) >= 4 else ""
    return DumpFile(path, match[1], match[2], task, stream, time, context, thread, step, run)


def problem_list(problems: Mapping[str, str]) -> list[Problem]:
    """Return problems with files as data of a result."""
    return [Problem(path, text) for path, text in problems.items()]


@contextlib.contextmanager
def collect_problem(problems: Problems, path: str, text: str = "{}") -> Iterator[None]:
    """Return a context manager that adds an error about a file to ``problems`` and goes on.

    A file that another program wrote may have anything in the place of a number, a list or a table.
    """
    try:
        yield
    except _ERRORS as error:
        problems[path] = text.format(error)


def name_in_files(op: str) -> str:
    """Return the name of an op as file names have it."""
    return re.sub(r"[/.\\ ]", "_", op)
