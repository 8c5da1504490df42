"""A profile in memory: its devices with their runs of ops, what their steps wait for, by phase, and what ops cost."""

from __future__ import annotations

import collections
import re
from dataclasses import InitVar, dataclass, field
from typing import Any, Callable, Iterable, NamedTuple, Sequence, Tuple

import numpy as np

from npu_shim.profiles import kinds, work
from npu_shim.profiles.columns import number
from npu_shim.profiles.exports import Links, Waits
from npu_shim.profiles.files import ProfileFile
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.steps import SLOW, Steps
from npu_shim.rehearsal.assess.products import Product

Union = Tuple[np.ndarray, np.ndarray]  # starts and ends of the time that ops cover

GAPS = "launch gaps"
WAITS = (*kinds.CATEGORIES, GAPS)
OP = ("type", "name")  # cells of an op
_MOST_ROWS = 5


class Row(NamedTuple):
    """Evidence: an op, a function of the host or a rank, its calls and milliseconds in a step, and why it is shown."""

    what: str
    type: str
    line: str
    calls: float
    ms: float
    why: str


@dataclass
class Profile:
    """A profile.

    Attributes:
        files: that were found.
        product: for bounds.
        devices: with at least one run.
        rows: of tables without single runs, by their kinds.
        lines: of the script by the names of ops, and by their types.
        links: the traffic between ranks.
        waits: the milliseconds that each rank waits in a collective.
        problems: what is wrong with files, by path.
    """

    files: list[ProfileFile]
    product: Product | None = None
    devices: list[Device] = field(default_factory=list)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: collections.defaultdict(list))
    lines: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    links: Links = field(default_factory=lambda: collections.defaultdict(lambda: np.zeros(2)))
    waits: Waits = field(default_factory=lambda: collections.defaultdict(dict))
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Device:
    """The runs of ops on one device.

    Attributes:
        profile: that it belongs to.
        source: the run that it belongs to, a folder below that of the profile.
        name: of the device or rank.
        signatures: the ops; the other attributes number them.
        category: of each signature.
        ratios: mean use of the matrix unit, the vector unit and memory by each signature, NaN if it is not known.
        code, start, end: of each run, in nanoseconds, sorted by the start.
        steps: its steps.
        length, slow, busy: of each step, the time from its start to its end; True if it takes several times as long as
            the median; the time in which any op runs.
        phases: a row for each step with its data phase, forward and backward pass, and gradient refresh. A moment
            belongs to the first category that is busy.
        waits: for each of WAITS such rows. Idle time before the forward pass is the host's, later it is a launch gap.
        step: in which each run starts, -1 for none.
        takes, alone: the milliseconds of a step, and of its communication that nothing overlaps.
        calls, ms: of each signature, in a step.
        kind: of bottleneck, of each signature.
    """

    profile: Profile
    source: str
    name: str
    signatures: list[Signature]
    category: np.ndarray
    ratios: np.ndarray
    runs: InitVar[Sequence[np.ndarray]]
    steps: Steps

    def __post_init__(self, runs: Sequence[np.ndarray]) -> None:
        self.code, self.start, self.end = runs
        edges = self.steps.edges
        self.length = edges[:, -1] - edges[:, 0]
        self.slow = self.length > SLOW * np.median(self.length)
        self.phases = np.diff(edges, axis=1)
        rank = np.array([kinds.CATEGORIES.index(each) for each in self.category], np.int8)[self.code]
        covered = [np.zeros_like(self.phases)]
        for place in range(len(kinds.CATEGORIES)):
            is_there = (rank == place).any()
            covered.append(_filled(_union(self.start, self.end, rank <= place), edges) if is_there else covered[-1])
        self.busy = covered[-1].sum(axis=1)
        idle = self.phases - covered[-1]
        self.waits = dict(zip(WAITS, [*np.diff(covered, axis=0), idle]))
        self.waits[kinds.HOST][:, 0] += idle[:, 0]
        idle[:, 0] = 0
        self.step = np.searchsorted(edges[:, 0], self.start, "right").astype(np.int32) - 1
        self.step[self.start >= edges[self.step, -1]] = -1
        self.takes, self.alone = self.total(self.length), self.total(self.waits[kinds.COMMUNICATION])
        self.calls, self.ms = self.sums(np.inf)
        self.kind = np.array([kinds.kind(each) for each in self.signatures], object)
        self.on_cpu = any(kinds.on_cpu(each) for each in self.signatures)

    def sums(self, limit: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the calls and milliseconds of each signature in a step, by the runs shorter than a limit for each."""
        took = self.end - self.start
        short = (self.step >= 0) & (took < np.broadcast_to(limit, len(self.signatures))[self.code])
        code, number = self.code[short], len(self.signatures)
        return np.bincount(code, minlength=number) / len(self.length), self.mean(np.bincount(code, took[short], number))

    def by_type(self, types: Sequence[str]) -> np.ndarray:
        """Return the nanoseconds of each type in each step."""
        place = {name: number for number, name in enumerate(types)}
        of_type = np.array([place[each.type] for each in self.signatures])[self.code]
        kept, shape = self.step >= 0, (len(self.length), len(types))
        cell = self.step[kept] * len(types) + of_type[kept]
        return np.bincount(cell, (self.end - self.start)[kept], shape[0] * shape[1]).reshape(shape)

    def only(self, wanted: np.ndarray) -> float:
        """Return the milliseconds of a step in which ops run and all of them are wanted, True for each signature."""
        others = _union(self.start, self.end, ~wanted[self.code])
        return self.total(self.busy - _filled(others, self.steps.edges[:, [0, -1]])[:, 0])

    def mean(self, nanoseconds: np.ndarray) -> np.ndarray:
        """Return sums over the steps as milliseconds of a step."""
        return nanoseconds / len(self.length) / 1e6

    def total(self, nanoseconds: np.ndarray) -> float:
        """Return the sum over the steps as milliseconds of a step."""
        return float(self.mean(nanoseconds.sum()))

    def bound(self, places: Iterable[int]) -> float:
        """Return the milliseconds that ops take in a step at least; 0 without a product."""
        product = self.profile.product
        least = (work.bound(self.signatures[place], product) * self.calls[place] for place in places if product)
        return sum(least) / 1e6

    def groups(self, places: Iterable[int], cost: np.ndarray, keys: Sequence[str] = OP) -> list[list[int]]:
        """Return places of signatures, together those with equal cells, those that cost most first."""
        found: dict[tuple[str, ...], list[int]] = {}
        for place in places:
            if self.calls[place] > 0:
                found.setdefault(tuple(getattr(self.signatures[place], key) for key in keys), []).append(int(place))
        return [places for _, places in sorted(found.items(), key=lambda each: (-cost[each[1]].sum(), each[0]))]

    def row(self, places: list[int], why: str) -> Row:
        """Return the evidence of one op with some signatures."""
        each, calls, ms = self.signatures[places[0]], self.calls[places].sum(), self.ms[places].sum()
        return Row(each.name, each.type, self.line(places[0]), float(calls), float(ms), why)

    def line(self, place: int) -> str:
        """Return the line of an op, empty if it is not known."""
        names, types = self.profile.lines
        return names.get(self.signatures[place].name) or types.get(self.signatures[place].type, "")

    def rows(self, places: Iterable[int], why: Callable[[int], str]) -> list[Row]:
        """Return the evidence of the ops that cost most; runs of one op with other shapes are one row."""
        return [self.row(each, why(each[0])) for each in self.groups(places, self.ms)[:_MOST_ROWS]]

    def functions(self, pattern: str) -> list[Row]:
        """Return the functions of the host whose level or name fits, with their time in a step."""
        found = []
        for each in self.profile.rows["api_statistic"]:
            name, level = each["name"], each.get("level", "")
            if each["source"] == self.source and re.search(pattern, f"{level} {name}", re.I):
                calls = number(each["count"]) / len(self.length)
                found.append(Row(name, level, "", calls, self.total(np.array(each["total"])), "on the host"))
        return sorted(found, key=lambda row: (-row.ms, row.what))[:_MOST_ROWS]


def _union(start: np.ndarray, end: np.ndarray, kept: np.ndarray) -> Union:
    """Return the union of the intervals that are kept; all are sorted by their start."""
    if not kept.all():
        start, end = start[kept], end[kept]
    if not len(start):
        return start, end
    end = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > end[:-1]))
    start = start[first]  # and no longer all of them, of which there may be millions
    return start, end[np.concatenate((first[1:], [True]))]


def _filled(covered: Union, edges: np.ndarray) -> np.ndarray:
    """Return how much of the intervals between edges a union covers.

    Args:
        covered: of intervals.
        edges: a row of times that do not fall, for each step.
    Returns:
        For each step a row with the covered time of each interval between its edges.
    """
    start, end = covered
    before = np.zeros(len(start) + 1, np.int64)
    np.subtract(end, start, out=before[1:])  # in place, as there may be millions
    np.cumsum(before[1:], out=before[1:])
    place = np.searchsorted(start, edges, "right")
    beyond = np.maximum(end[place - 1] - edges, 0) * (place > 0) if len(end) else 0
    return np.diff(before[place] - beyond, axis=1)
