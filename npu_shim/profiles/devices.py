"""A profile in memory: its devices with their runs of ops, what their steps wait for, by phase, and what ops cost."""

from __future__ import annotations

import collections
import re
from dataclasses import InitVar, dataclass, field
from typing import Callable, Iterable, Sequence

import numpy as np

from npu_shim.profiles import op_kinds
from npu_shim.profiles.expected import ExpectedStep
from npu_shim.profiles.runs import Runs
from npu_shim.profiles.steps import SLOW, Steps
from npu_shim.profiles.table_forms import ProfileFile, TableRow, finite_number
from npu_shim.rehearsal.assess.products import Product

GAPS = "launch gaps"
WAITS = (*op_kinds.CATEGORIES, GAPS)
OP = ("type", "name")  # cells of an op
MOST_ROWS = 5


@dataclass(frozen=True, order=True)
class Evidence:
    """A row of a finding: an op, a function of the host or a rank, calls and milliseconds in a step, and the reason."""

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
        expected: the prediction that it is compared with.
        runs: of ops, by the source of their files.
        rows: of tables without single runs, by their kinds.
        waits: the milliseconds that each rank waits in a collective, by its step and name.
        problems: what is wrong with files, by path.
        devices: with at least one run.
        lines: of the script by the names of ops, and by their types.
    """

    files: list[ProfileFile]
    product: Product | None = None
    expected: ExpectedStep | None = None
    runs: dict[str, Runs] = field(default_factory=lambda: collections.defaultdict(Runs))
    rows: dict[str, list[TableRow]] = field(default_factory=lambda: collections.defaultdict(list))
    waits: dict[tuple[str, str], dict[str, float]] = field(default_factory=lambda: collections.defaultdict(dict))
    problems: dict[str, str] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=list)
    lines: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))


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
    columns: InitVar[Sequence[np.ndarray]]
    steps: Steps

    def __post_init__(self, columns: Sequence[np.ndarray]) -> None:
        runs, edges = self.profile.runs[self.source], self.steps.edges
        self.signatures, self.category, self.ratios = runs.signatures, np.array(runs.category), runs.mean_ratios()
        self.code, self.start, self.end = columns
        self.length = edges[:, -1] - edges[:, 0]
        self.slow = self.length > SLOW * np.median(self.length)
        self.phases = np.diff(edges, axis=1)
        rank = np.array([op_kinds.CATEGORIES.index(category) for category in self.category], np.int8)[self.code]
        covered = [np.zeros_like(self.phases)]
        for place in range(len(op_kinds.CATEGORIES)):
            covered.append(self._covered_time(rank <= place, edges) if (rank == place).any() else covered[-1])
        self.busy = covered[-1].sum(axis=1)
        idle = self.phases - covered[-1]
        self.waits = dict(zip(WAITS, [*np.diff(covered, axis=0), idle]))
        self.waits[op_kinds.HOST][:, 0] += idle[:, 0]
        idle[:, 0] = 0
        self.step = np.searchsorted(edges[:, 0], self.start, "right").astype(np.int32) - 1
        self.step[self.start >= edges[self.step, -1]] = -1
        self.takes, self.alone = self.ms_per_step(self.length), self.ms_per_step(self.waits[op_kinds.COMMUNICATION])
        inside, number = self.step >= 0, len(self.signatures)
        self.calls = np.bincount(self.code[inside], minlength=number) / len(self.length)
        took = np.bincount(self.code[inside], (self.end - self.start)[inside], number)
        self.ms = took / len(self.length) / 1e6
        self.kind = np.array([op_kinds.bottleneck_kind(signature) for signature in self.signatures], object)
        self.on_cpu = any(signature.core.upper() == "CPU" for signature in self.signatures)

    def time_by_type(self, types: Sequence[str]) -> np.ndarray:
        """Return the nanoseconds of each step in ops of each of the types, which are sorted."""
        spent, inside = np.zeros((len(types), len(self.length))), self.step >= 0
        of_type = np.searchsorted(types, [signature.type for signature in self.signatures])[self.code]
        np.add.at(spent, (of_type[inside], self.step[inside]), (self.end - self.start)[inside])
        return spent

    def exclusive_ms(self, is_wanted_signature: np.ndarray) -> float:
        """Return the milliseconds of a step in which ops run and all of them are wanted, True for each signature."""
        return self.ms_per_step(
            self.busy - self._covered_time(~is_wanted_signature[self.code], self.steps.edges[:, [0, -1]])[:, 0]
        )

    def ms_per_step(self, nanoseconds: np.ndarray) -> float:
        """Return the sum over the steps as milliseconds of a step."""
        return float(nanoseconds.sum() / len(self.length) / 1e6)

    def least_ms(self, places: Iterable[int]) -> float:
        """Return the milliseconds that ops take in a step at least; 0 without a product."""
        product = self.profile.product
        least = (
            op_kinds.least_nanoseconds(self.signatures[place], product) * self.calls[place]
            for place in places
            if product
        )
        return sum(least) / 1e6

    def group_signatures(self, places: Iterable[int], cost: np.ndarray, keys: Sequence[str] = OP) -> list[list[int]]:
        """Return places of signatures, together those with equal cells, those that cost most first."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for place in places:
            if self.calls[place] > 0:
                groups.setdefault(tuple(getattr(self.signatures[place], key) for key in keys), []).append(int(place))
        return [places for _, places in sorted(groups.items(), key=lambda group: (-cost[group[1]].sum(), group[0]))]

    def evidence_row(self, places: list[int], why: str) -> Evidence:
        """Return the evidence of one op with some signatures."""
        signature, calls, ms = self.signatures[places[0]], self.calls[places].sum(), self.ms[places].sum()
        return Evidence(signature.name, signature.type, self.line_of_op(places[0]), float(calls), float(ms), why)

    def line_of_op(self, place: int) -> str:
        """Return the line of an op, empty if it is not known."""
        names, types = self.profile.lines
        return names.get(self.signatures[place].name) or types.get(self.signatures[place].type, "")

    def evidence_rows(self, places: Iterable[int], why: Callable[[int], str]) -> list[Evidence]:
        """Return the evidence of the ops that cost most; runs of one op with other shapes are one row."""
        return [self.evidence_row(group, why(group[0])) for group in self.group_signatures(places, self.ms)[:MOST_ROWS]]

    def host_functions(self, kind: str) -> list[Evidence]:
        """Return the functions of the host that belong to a kind of bottleneck, with their time in a step."""
        rows = []
        for api in self.profile.rows["api_statistic"]:
            name, level = api.cells["name"], api.cells.get("level", "")
            if api.source == self.source and re.search(op_kinds.KINDS[kind].functions, f"{level} {name}", re.I):
                calls = finite_number(api.cells["count"]) / len(self.length)
                rows.append(
                    Evidence(name, level, "", calls, self.ms_per_step(np.array(api.times["total"])), "on the host")
                )
        return sorted(rows, key=lambda row: (-row.ms, row.what))[:MOST_ROWS]

    def _covered_time(self, is_kept_run: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """Return how much of the intervals between edges the runs that are kept cover.

        Args:
            is_kept_run: True for such a run.
            edges: a row of times that do not fall, for each step.
        Returns:
            For each step a row with the covered time of each interval between its edges.
        """
        # An empty run before all others.
        start = np.append(-1, self.start[is_kept_run])
        end = np.append(-1, self.end[is_kept_run])
        np.maximum.accumulate(end, out=end)
        first = np.append(True, start[1:] > end[:-1])  # of runs that no earlier one touches
        start, end = start[first], end[np.append(first[1:], True)]  # the union, and no longer millions
        before = np.append(0, np.cumsum(end - start))
        place = np.searchsorted(start, edges, "right")
        return np.diff(before[place] - np.maximum(end[place - 1] - edges, 0), axis=1)
