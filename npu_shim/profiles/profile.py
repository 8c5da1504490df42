"""A profile in memory: its devices with the runs of ops, their steps, and what other tables say."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Iterator, Sequence

import numpy as np

from npu_shim.profiles import columns, exports, files, kinds, lines, steps, tables
from npu_shim.profiles.exports import Link
from npu_shim.profiles.files import ProfileFile
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.lines import Lines
from npu_shim.profiles.runs import Runs

_RANK = re.compile(r"rank_?(\d+)", re.I)
_MOST_BYTES = 1 << 28  # of a timeline that is read for its links alone


@dataclass
class Device:
    """The runs of ops on one device.

    Attributes:
        name: of the device or rank.
        source: the run that it belongs to, a folder below that of the profile.
        signatures: the ops; the other attributes number them.
        code, start, end: of each run, in nanoseconds, sorted by the start.
        ratios: mean use of the matrix unit, the vector unit and memory by each signature, NaN if it is not known.
        category: of each signature.
        steps: its steps.
        links: to other ranks.
    """

    name: str
    source: str
    signatures: list[Signature]
    code: np.ndarray
    start: np.ndarray
    end: np.ndarray
    ratios: np.ndarray
    category: np.ndarray
    steps: steps.Steps
    links: list[Link] = field(default_factory=list)


@dataclass
class Profile:
    """A profile.

    Attributes:
        files: that were found.
        devices: with at least one run.
        apis: functions of the host: run, level, name, calls, milliseconds.
        lines: of the script.
        totals: of tables without single runs: table, type, core, count, milliseconds.
        problems: what is wrong with files, by path.
    """

    files: list[ProfileFile]
    devices: list[Device] = field(default_factory=list)
    apis: list[tuple[str, str, str, int, float]] = field(default_factory=list)
    lines: Lines = field(default_factory=Lines)
    totals: list[tuple[str, str, str, int, float]] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


class NothingToRead(ValueError):
    """A folder has no profile."""


def read(folder: str, graphs: Sequence[str] = ()) -> Profile:
    """Read a profile.

    Args:
        folder: with the exports of one job, at any depth.
        graphs: further folders that know the lines of ops.
    Raises:
        NothingToRead: there is nothing to read.
    """
    made = Profile(files.find(folder))
    of_source: dict[str, list[ProfileFile]] = {}
    for each in made.files:
        of_source.setdefault(each.source, []).append(each)
    windows = [
        (each.source, [columns.number(row[name]) for name in ("begin", "end")])
        for each in made.files
        if each.kind == "profiled_steps"
        for row in tables.read_rows(each.path, each.kind, made.problems)[0]
    ]
    for source, members in sorted(of_source.items()):
        own = (span for place, span in windows if not place or f"{source}{os.sep}".startswith(f"{place}{os.sep}"))
        made.devices += _devices(source, members, next(own, []), made.problems)
    made.devices = _of_last_runs(made.devices, made.problems)
    for each in made.files:
        _small(each, made)
    made.lines = lines.read(folder, graphs, made.files, made.problems)
    if not made.devices and not made.totals:
        raise NothingToRead(_nothing(folder, made))
    return made


def _nothing(folder: str, made: Profile) -> str:
    if made.problems:
        path, problem = next(iter(made.problems.items()))
        return f"{folder} has no table that can be read. {path}: {problem}"
    return f"{folder} has no op_summary*.csv, msprof*.db or msprof*.json. Run msprof --export=on --output={folder}"


def _devices(
    source: str, members: list[ProfileFile], window: list[float], problems: dict[str, str]
) -> Iterator[Device]:
    runs = Runs()
    links = _read_runs(members, runs, problems)
    if not runs:
        return
    numbers = sorted({each.device for each in runs.signatures}, key=lambda text: (len(text), text))
    traced = {number: _traced(members, number, problems) for number in numbers}
    communicate = {each.device for each, busy in zip(runs.signatures, runs.category) if busy == kinds.COMMUNICATION}
    for number in set(numbers) - communicate:
        cells = Signature(number, name="gradients", type="AllReduce", core="COMMUNICATION")
        runs.add_rows((cells, start, start + took) for start, took in traced[number][1])
    joined, ratios, category = runs.joined(), runs.ratios(), np.array(runs.category)
    of_device = np.array([each.device for each in runs.signatures])
    marks = [exports.read_steps(each.path) for each in members if each.kind == "database"]
    for number in numbers:
        own = of_device == number
        code, start, end = joined if own.all() else [column[own[joined[0]]] for column in joined]
        if len(code):
            marked = next((each for each in marks if len(each)), np.zeros((0, 2), np.int64))
            found = traced[number][0] or steps.find(code, start, end, runs.signatures, category, marked)
            name = f"{source} {number}".strip() or "0"
            found = steps.chosen(found, window)
            yield Device(name, source, runs.signatures, code, start, end, ratios, category, found, links)


def _read_runs(members: list[ProfileFile], runs: Runs, problems: dict[str, str]) -> list[Link]:
    """Read runs of the best export that can be read: tables, a data base, a timeline; return the links of all."""
    links: list[Link] = []
    for kind in ("op_summary", "task_time"):
        runs.only = kinds.TRANSFER if runs else ""  # op_summary has no copies between host and device
        for each in (each for each in members if each.kind == kind):
            tables.read_runs(each.path, kind, each.device, runs, problems)
    for kind, reader in (("database", exports.read_database), ("timeline", exports.read_timeline)):
        receiver = Runs() if runs else runs
        for each in (each for each in members if each.kind == kind and not links):
            wanted = kinds.COMMUNICATION in runs.category and os.path.getsize(each.path) < _MOST_BYTES
            if receiver is runs or wanted:
                links = reader(each.path, receiver, problems)
    return links


def _traced(
    members: list[ProfileFile], device: str, problems: dict[str, str]
) -> tuple[steps.Steps | None, list[steps.Span]]:
    rows: list[dict[str, str]] = []
    unit = 0
    for each in (each for each in members if each.kind == "step_trace"):
        of_file, units = tables.read_rows(each.path, each.kind, problems)
        rows += [row for row in of_file if row.get("device", each.device) in (device, "")]
        unit = units.get("end", 0) if rows else unit
    return steps.traced(rows, unit)


def _of_last_runs(devices: list[Device], problems: dict[str, str]) -> list[Device]:
    """Return the devices without earlier runs of the same rank, called by their ranks alone where these differ."""
    ranks = [(_RANK.findall(each.source) or [each.name.rpartition(" ")[2]])[-1] for each in devices]
    kept = []
    for each, rank in zip(devices, ranks):
        later = (other for other, its in zip(devices, ranks) if its == rank and each.end.max() < other.start[0])
        if each.source and any(later):
            problems[each.source] = "it is an earlier run and was left out. Give its folder alone to read it"
        else:
            kept.append((each, rank))
    if len({rank for _, rank in kept}) == len(kept):
        for each, rank in kept:
            each.name = rank
    return [each for each, _ in kept]


def _small(each: ProfileFile, made: Profile) -> None:
    if each.kind not in ("op_statistic", "communication_statistic", "api_statistic"):
        return
    rows, units = tables.read_rows(each.path, each.kind, made.problems)
    for row in rows:
        count, ms = int(columns.number(row["count"])), columns.number(row["total"]) * (units["total"] or 1000) / 1e6
        if each.kind == "api_statistic":
            made.apis.append((each.source, row.get("level", ""), row["name"], count, ms))
        else:
            made.totals.append((each.kind, row["type"], row.get("core", ""), count, ms))
