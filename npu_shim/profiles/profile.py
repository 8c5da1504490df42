"""A profile in memory: its devices with the runs of ops, their steps, and what other tables say."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Iterator, Sequence

import numpy as np

from npu_shim.profiles import exports, files, kinds, lines, steps, tables
from npu_shim.profiles.exports import Link
from npu_shim.profiles.files import ProfileFile
from npu_shim.profiles.lines import Lines
from npu_shim.profiles.tables import Runs, Signature, Signatures

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
    for source, members in sorted(of_source.items()):
        made.devices += _devices(source, members, made.problems)
    made.devices = _last(made.devices, made.problems)
    _name(made.devices)
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


def _devices(source: str, members: list[ProfileFile], problems: dict[str, str]) -> Iterator[Device]:
    signatures = Signatures()
    runs, links = _runs(members, signatures, problems)
    if not runs:
        return
    known = signatures.all()
    ratios = _means(runs, len(known))
    parts = [each[:3] for each in runs]
    runs.clear()  # the ratios of millions of runs
    codes, starts, ends = (np.concatenate(each) for each in zip(*parts))
    del parts
    ends += starts
    category = np.array([kinds.category(each) for each in known])
    known = [each if each.type else each._replace(type=each.name) for each in known]
    device = np.array([each.device for each in known])
    for number in sorted(set(device.tolist()), key=lambda text: (len(text), text)):
        kept = (device == number)[codes] & (category != kinds.OTHER)[codes] & (ends >= starts)
        if not kept.any():
            continue
        code, start, end = codes, starts, ends
        if not kept.all() or (starts[1:] < starts[:-1]).any():
            order = np.flatnonzero(kept)
            order = order[np.argsort(starts[order], kind="stable")]
            code, start, end = codes[order], starts[order], ends[order]
        found, messages = _steps(members, number, problems)
        if messages is not None and len(messages.start) and not (category == kinds.COMMUNICATION)[code].any():
            known.append(Signature(number, name="gradients", type="AllReduce", core="COMMUNICATION"))
            category = np.append(category, kinds.COMMUNICATION)
            ratios = np.concatenate([ratios, np.full((3, 1), np.nan)], 1)
            device = np.append(device, number)
            code = np.concatenate([code, np.full(len(messages.start), len(known) - 1, np.int32)])
            start, end = (
                np.concatenate([start, messages.start]),
                np.concatenate([end, messages.start + messages.duration]),
            )
            order = np.argsort(start, kind="stable")
            code, start, end = code[order], start[order], end[order]
        for each in (each for each in members if each.kind == "database"):
            found = found or steps.marked(exports.read_steps(each.path), code, start, category)
        ids = np.array([each.step for each in known])
        found = found or steps.numbered(code, start, end, ids, category)
        if found is None:
            numbers = {name: place for place, name in enumerate(dict.fromkeys(each.name for each in known))}
            names = np.array([numbers[each.name] for each in known])
            found = steps.inferred(code, start, end, names, category)
        yield Device(
            f"{source} {number}".strip() or "0", source, known, code, start, end, ratios, category, found, links
        )


def _runs(
    members: list[ProfileFile], signatures: Signatures, problems: dict[str, str]
) -> tuple[list[Runs], list[Link]]:
    """Return runs of the best export that can be read: tables, a data base, a timeline; and the links of the others."""
    runs: list[Runs] = []
    links: list[Link] = []
    for kind in ("op_summary", "task_time"):
        before = bool(runs)
        for each in (each for each in members if each.kind == kind):
            read_now = tables.read_runs(each.path, kind, each.device, signatures, problems)
            runs += _copies(read_now, signatures) if before else read_now
    for kind, reader in (("database", exports.read_database), ("timeline", exports.read_timeline)):
        from_here = not runs
        for each in (each for each in members if each.kind == kind and not links):
            if from_here or (_collective(signatures) and os.path.getsize(each.path) < _MOST_BYTES):
                of_file, links = reader(each.path, signatures if from_here else Signatures(), problems)
                runs += of_file if from_here else []
    return runs, links


def _collective(signatures: Signatures) -> bool:
    return any(kinds.category(each) == kinds.COMMUNICATION for each in signatures.all())


def _copies(runs: list[Runs], signatures: Signatures) -> list[Runs]:
    """Return the runs that op_summary does not have: copies between host and device."""
    wanted = np.array([kinds.category(each) == kinds.TRANSFER for each in signatures.all()], bool)
    made = []
    for each in runs:
        kept = wanted[each.code]
        made.append(Runs(each.code[kept], each.start[kept], each.duration[kept], each.ratios[:, kept]))
    return made


def _means(runs: list[Runs], number: int) -> np.ndarray:
    """Return the mean ratios of each signature, weighted by the durations."""
    total, weight = np.zeros((3, number)), np.zeros((3, number))
    for each in runs:
        for place in range(3):
            known = np.isfinite(each.ratios[place])
            took = each.duration[known].astype(np.float64)
            total[place] += np.bincount(each.code[known], took * each.ratios[place][known], number)
            weight[place] += np.bincount(each.code[known], took, number)
    return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)


def _steps(
    members: list[ProfileFile], device: str, problems: dict[str, str]
) -> tuple[steps.Steps | None, steps.Messages | None]:
    rows, units = [], {}
    for each in (each for each in members if each.kind == "step_trace"):
        for row in tables.read_rows(each.path, each.kind, problems):
            if (row.get("device") or [each.device])[0] in (device, ""):
                rows.append(row)
        if rows:
            units = tables.units(each.path, each.kind)
    found = steps.traced(rows, units)
    return found if found else (None, None)


def _rank(device: Device) -> str:
    """Return the number of the rank by the folder, else that of the device."""
    found = _RANK.findall(device.source)
    return found[-1] if found else device.name.rpartition(" ")[2]


def _last(devices: list[Device], problems: dict[str, str]) -> list[Device]:
    """Return the devices without runs that ended before another one of the same device began."""
    kept = []
    for each in devices:
        later = [other for other in devices if _rank(other) == _rank(each) and each.end.max() < other.start[0]]
        if later and each.source:
            problems[each.source] = "it is an earlier run and was left out. Give its folder alone to read it"
        else:
            kept.append(each)
    return kept


def _name(devices: list[Device]) -> None:
    """Call devices by their numbers alone where these differ."""
    numbers = [_rank(each) for each in devices]
    if len(set(numbers)) == len(numbers):
        for each, number in zip(devices, numbers):
            each.name = number


def _small(each: ProfileFile, made: Profile) -> None:
    if each.kind in ("op_statistic", "communication_statistic"):
        for row in tables.read_rows(each.path, each.kind, made.problems):
            count, total = _figure(row, "count"), _figure(row, "total")
            made.totals.append((each.kind, row["type"][0], (row.get("core") or [""])[0], int(count), total / 1000))
    elif each.kind == "api_statistic":
        nanoseconds = None
        for row in tables.read_rows(each.path, each.kind, made.problems):
            nanoseconds = nanoseconds or tables.units(each.path, each.kind)["total"] or 1000
            count, total = _figure(row, "count"), _figure(row, "total")
            made.apis.append(
                (each.source, (row.get("level") or [""])[0], row["name"][0], int(count), total * nanoseconds / 1e6)
            )


def _figure(row: dict[str, list[str]], column: str) -> float:
    try:
        value = float(row[column][0])
    except ValueError:
        return 0.0
    return value if np.isfinite(value) else 0.0
