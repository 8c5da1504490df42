"""Read a profile: its devices with the runs of ops, their steps, and what other tables say."""

from __future__ import annotations

import os
import re
from typing import Iterator, Sequence

import numpy as np

from npu_shim.profiles import columns, exports, files, kinds, lines, steps, tables
from npu_shim.profiles.devices import Device, Profile
from npu_shim.profiles.files import ProfileFile
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.runs import Runs
from npu_shim.rehearsal.assess.products import Product

_RANK = re.compile(r"rank_?(\d+)", re.I)
_MOST_BYTES = 1 << 28  # of a timeline that is read for its links alone


class NothingToRead(ValueError):
    """A folder has no profile."""


def read(folder: str, graphs: Sequence[str] = (), product: Product | None = None) -> Profile:
    """Read a profile.

    Args:
        folder: with the exports of one job, at any depth.
        graphs: further folders that know the lines of ops.
        product: for bounds.
    Raises:
        NothingToRead: there is nothing to read.
    """
    made = Profile(files.find(folder), product)
    for each in [*made.files, *(each for graph in graphs for each in files.find(graph) if each.kind in lines.TABLES)]:
        if each.kind in columns.SMALL:
            made.rows[each.kind] += tables.read_rows(each, made.problems)
    for source in sorted({each.source for each in made.files}):
        made.devices += _devices(source, [each for each in made.files if each.source == source], made)
    _leave_earlier_runs(made)
    made.lines = lines.read(folder, graphs, made.rows, made.problems)
    if not (made.devices or made.rows["op_statistic"] or made.rows["communication_statistic"]):
        for path, problem in made.problems.items():
            raise NothingToRead(f"{folder} has no table that can be read. {path}: {problem}")
        raise NothingToRead(
            f"{folder} has no op_summary*.csv, msprof*.db or msprof*.json. Run msprof --export=on --output={folder}"
        )
    return made


def _devices(source: str, members: list[ProfileFile], made: Profile) -> Iterator[Device]:
    runs = Runs()
    _read_runs(source, members, runs, made)
    if not runs:
        return
    rows = [row for row in made.rows["step_trace"] if row["source"] == source]
    windows = (
        row
        for row in made.rows["profiled_steps"]
        if os.path.join(source, "").startswith(os.path.join(row["source"], ""))
    )
    window: list[int] = next((row["begin"] + row["end"] for row in windows), [])
    numbers = sorted({each.device for each in runs.signatures}, key=lambda text: (len(text), text))
    traced = {number: steps.traced(row for row in rows if row["device"] in (number, "")) for number in numbers}
    communicate = {each.device for each, busy in zip(runs.signatures, runs.category) if busy == kinds.COMMUNICATION}
    for number in set(numbers) - communicate:
        cells = Signature(number, name="gradients", type="AllReduce", core="COMMUNICATION")
        runs.add_rows((cells, *span) for span in traced[number][1])
    joined, ratios, category = runs.joined(), runs.ratios(), np.array(runs.category)
    of_device = np.array([each.device for each in runs.signatures])
    marks = [exports.read_steps(each.path) for each in members if each.kind == "database"]
    marked = next(filter(len, marks), np.zeros((0, 2), np.int64))
    for number in numbers:
        own = (of_device == number)[joined[0]]
        columns_of = joined if own.all() else [column[own] for column in joined]
        if own.any():
            found = traced[number][0] or steps.find(columns_of, runs.signatures, category, marked)
            name = f"{source} {number}".strip() or "0"
            found = steps.chosen(found, window)
            yield Device(made, source, name, runs.signatures, category, ratios, columns_of, found)


def _read_runs(source: str, members: list[ProfileFile], runs: Runs, made: Profile) -> None:
    """Read runs of the best export that can be read: tables, a data base, a timeline; and the links of any."""
    for kind in ("op_summary", "task_time"):
        runs.only = kinds.TRANSFER if runs else ""  # op_summary has no copies between host and device
        for each in (each for each in members if each.kind == kind):
            tables.read_runs(each.path, kind, each.device, runs, made.problems)
    known = len(made.links)
    for kind, reader in (("database", exports.read_database), ("timeline", exports.read_timeline)):
        receiver = Runs() if runs else runs
        for each in (each for each in members if each.kind == kind):
            wanted = kinds.COMMUNICATION in runs.category and os.path.getsize(each.path) < _MOST_BYTES
            if receiver is runs or (wanted and len(made.links) == known):
                reader(each.path, source, receiver, made.links, made.problems)
    rank = (_RANK.findall(source) or [""])[-1]
    links = made.links.copy() if len(made.links) > known else made.links  # of messages, if no others are known
    for each in (each for each in members if each.kind in files.MESSAGES):
        exports.read_messages(each.path, source, rank or each.device, links, made.waits, made.problems)


def _leave_earlier_runs(made: Profile) -> None:
    """Leave out earlier runs of the same rank, and call devices by their ranks alone where these differ."""
    ranks = [(_RANK.findall(each.source) or [each.name.rpartition(" ")[2]])[-1] for each in made.devices]
    kept = []
    for each, rank in zip(made.devices, ranks):
        later = (other for other, its in zip(made.devices, ranks) if its == rank and each.end.max() < other.start[0])
        if each.source and any(later):
            made.problems[each.source] = "it is an earlier run and was left out. Give its folder alone to read it"
            made.links = {key: link for key, link in made.links.items() if key[3] != each.source}
        else:
            kept.append((each, rank))
    if len({rank for _, rank in kept}) == len(kept):
        for each, rank in kept:
            each.name = rank
    made.devices = [each for each, _ in kept]
