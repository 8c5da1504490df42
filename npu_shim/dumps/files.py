"""The files of a dump folder: their names, and the folders they are in.

The engine writes ``{time}/{device}/{model}/{model id}/{iteration}/TYPE.NAME.TASK.STREAM.TIMESTAMP``, in some releases
without the stream, and for parts of an operator with ``.TASKTYPE.CONTEXT.THREAD.DEVICE`` behind it. A name of more
than 255 characters is a number, and ``mapping.csv`` of the folder says which name it stands for.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from dataclasses import dataclass
from typing import Iterator

MAPPING = "mapping.csv"
OTHER = (".txt", ".pbtxt", ".json", ".csv", ".npy", ".log", ".html", ".pb", ".om")  # files beside dumps


@dataclass(frozen=True)
class DumpFile:
    """A dump file by its name.

    Attributes:
        path: of the file.
        op_type, op_name: with ``_`` for ``/`` and ``.``.
        task, stream, context, thread: on the device; -1 for those that the name does not have.
        time: when it was written, a number that grows.
        step: iteration by the folder; -1 in another folder.
        device, model: by the folders; empty in others.
        run: of the time, the device and the model.
    """

    path: str
    op_type: str
    op_name: str
    task: int
    stream: int
    time: int
    context: int = -1
    thread: int = -1
    step: int = -1
    device: str = ""
    model: str = ""
    run: str = ""


def find(folder: str) -> tuple[list[DumpFile], dict[str, str]]:
    """Return the dump files of a folder and what is wrong with other files, by path."""
    found: list[DumpFile] = []
    problems: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        full = mapping(place, problems)
        for name in sorted(names):
            path = os.path.join(place, name)
            made = named(path, full.get(name, name), os.path.relpath(path, folder))
            if made:
                found.append(made)
            elif name.isdigit():
                problems[path] = f"its number has no row in {MAPPING}. Copy that file along"
            elif not name.lower().endswith(OTHER) and not name.startswith("."):
                problems[path] = "its name is not that of a dump, TYPE.NAME.TASK.STREAM.TIMESTAMP. Move it away"
    return sorted(found, key=lambda each: (each.step, each.time, each.task)), problems


def latest(found: list[DumpFile]) -> dict[int, list[DumpFile]]:
    """Return the files of the last run on the first device by step."""
    run = max((each.run for each in found), default="")
    device = min((each.device for each in found if each.run == run), default="")
    members = [each for each in found if (each.run, each.device) == (run, device)]
    return {step: list(group) for step, group in itertools.groupby(members, lambda each: each.step)}


def below(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Return the paths of the files with an ending, in order."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(endings))


def mapping(folder: str, problems: dict[str, str]) -> dict[str, str]:
    """Return the rows of a folder's mapping.csv, number -> name; what is wrong with it is added to ``problems``."""
    path = os.path.join(folder, MAPPING)
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return {number: name for number, name in filter(None, csv.reader(stream))}
    except (ValueError, OSError, csv.Error) as error:
        problems[path] = f"it is no table of two columns: {error}. Copy the file again"
        return {}


def named(path: str, name: str, inside: str) -> DumpFile | None:
    """Return a dump file by its name, None for another name.

    Args:
        path: of the file.
        name: that it stands for.
        inside: the path from the dump folder.
    """
    parts = name.split(".")
    if len(parts) not in (4, 5, 8, 9) or not all(re.fullmatch("[0-9]{1,19}", part) for part in parts[2:]):
        return None
    numbers = list(map(int, parts[2:]))
    if len(numbers) == 2:
        numbers.insert(1, -1)  # no stream
    task, stream, time, context, thread = numbers[:3] + (numbers[4:6] or [-1, -1])
    folders = inside.split(os.sep)[:-1]
    step = int(folders[-1]) if folders and folders[-1].isdigit() else -1
    device, model = (folders[-4], folders[-3]) if len(folders) >= 4 else ("", "")
    run = os.sep.join(folders[:-4])
    return DumpFile(path, parts[0], parts[1], task, stream, time, context, thread, step, device, model, run)
