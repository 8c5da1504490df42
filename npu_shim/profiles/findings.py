"""Bottlenecks: which there are, what each costs, which rows show it, and how much a fix gains at most."""

from __future__ import annotations

import re
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence

import numpy as np

from npu_shim.profiles import kinds, work
from npu_shim.profiles.breakdown import GAPS, Breakdown, only, step_of
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.profile import Device, Profile
from npu_shim.rehearsal.assess.products import Product

LEAST = 0.03  # of a step, below which a cost is no finding
_MOST_ROWS = 5
OP = ("type", "name")  # cells of an op
_HOST = "host-bound"
_FULL = 0.8  # use of the matrix unit that large products reach
_LOW = 0.5
_TILE = 16  # elements of the matrix unit in each direction
_FEW, _MANY = 2, 32  # messages of gradients in a step
_COMPILES = re.compile("compile|buildgraph|graphprepare|retrace", re.I)
_FUNCTIONS = {_HOST: "^(host|python)", "data-bound": "^pipeline|GetNext"}
_LOOP_GAPS = 0.05  # of a step, which launches may take in a loop of steps on the device
_SLOW_LINK = 0.6  # of the median bandwidth
_SLOW_RANK = 1.05  # times the work of the others


class Row(NamedTuple):
    """Evidence: an op, a function of the host or a rank, its calls and milliseconds in a step, and why it is shown."""

    what: str
    type: str
    line: str
    calls: float
    ms: float
    why: str


class Finding(NamedTuple):
    """A bottleneck; times in milliseconds of a step.

    Attributes:
        id: of its kind.
        ms: the time that it costs.
        evidence: the rows that cost most.
        needed: the part of it that a fix does not save.
    """

    id: str
    ms: float
    evidence: list[Row]
    needed: float = 0.0

    @property
    def saved(self) -> float:
        """Return the time that a fix saves at most."""
        return max(self.ms - self.needed, 0.0)


class Case:
    """A device with its breakdown, ready for the search."""

    def __init__(self, profile: Profile, device: Device, found: Breakdown, product: Product | None) -> None:
        self.profile, self.device, self.found, self.product = profile, device, found, product
        self.steps = len(found.length)
        self.on_cpu = any(kinds.on_cpu(each) for each in device.signatures)
        kept = step_of(device) >= 0
        self.code = device.code[kept]
        self.took = device.end[kept] - device.start[kept]
        self.calls, self.ms = self.sums(np.full(len(device.signatures), np.inf))
        self.kind = np.array([kinds.kind(each) for each in device.signatures], object)

    def sums(self, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the calls and milliseconds of each signature in a step, by the runs shorter than a limit for each."""
        short = self.took < limit[self.code]
        code, took = self.code[short], self.took[short]
        calls, spent = np.bincount(code, minlength=len(limit)), np.bincount(code, took, len(limit))
        return calls / self.steps, spent / self.steps / 1e6

    @property
    def length(self) -> float:
        """The milliseconds of a step."""
        return self.mean(self.found.length)

    @property
    def alone(self) -> float:
        """The milliseconds of communication in a step that nothing overlaps."""
        return self.mean(self.found.waits[kinds.COMMUNICATION])

    def mean(self, nanoseconds: np.ndarray) -> float:
        """Return the mean over the steps in milliseconds."""
        return float(nanoseconds.sum()) / self.steps / 1e6

    def bound(self, place: int) -> float:
        """Return the milliseconds that an op takes in a step at least; 0 without a product."""
        return (
            work.bound(self.device.signatures[place], self.product) * self.calls[place] / 1e6 if self.product else 0.0
        )

    def groups(self, places: Iterable[int], cost: np.ndarray, keys: Sequence[str] = OP) -> list[list[int]]:
        """Return places of signatures, together those with equal cells, those that cost most first."""
        found: dict[tuple[str, ...], list[int]] = {}
        for place in places:
            if self.calls[place] > 0:
                cells = tuple(getattr(self.device.signatures[place], key) for key in keys)
                found.setdefault(cells, []).append(int(place))
        return [places for _, places in sorted(found.items(), key=lambda each: (-cost[each[1]].sum(), each[0]))]

    def row(self, places: list[int], why: str) -> Row:
        """Return the evidence of one op with some signatures."""
        each, calls, ms = self.device.signatures[places[0]], self.calls[places].sum(), self.ms[places].sum()
        return Row(each.name, each.type, self.profile.lines.of(each.name, each.type), float(calls), float(ms), why)

    def rows(self, places: Iterable[int], why: Callable[[int], str]) -> list[Row]:
        """Return the evidence of the ops that cost most; runs of one op with other shapes are one row."""
        return [self.row(each, why(each[0])) for each in self.groups(places, self.ms)[:_MOST_ROWS]]

    def functions(self, pattern: str) -> list[Row]:
        """Return the functions of the host whose level or name fits, with their time in a step."""
        own = [each for each in self.profile.apis if each[0] == self.device.source]
        fitting = [each for each in own if re.search(pattern, f"{each[1]} {each[2]}", re.I)]
        most = sorted(fitting, key=lambda each: (-each[4], each[2]))[:_MOST_ROWS]
        return [
            Row(name, level, "", calls / self.steps, ms / self.steps, "on the host")
            for _, level, name, calls, ms in most
        ]


def search(profile: Profile, cases: Sequence[Case], shown: int) -> list[Finding]:
    """Return the bottlenecks of a device, those that cost most first.

    Args:
        profile: the profile.
        cases: all devices.
        shown: the place of the device among them.
    """
    case = cases[shown]
    idle = {name: case.found.waits[name].sum(axis=1) for name in (GAPS, kinds.HOST)}
    waits, links = _waits(cases), list(_links(cases, shown))
    made = [*_recompiles(case, idle), *_ranks(cases, waits), *links]
    made += [*_messages(case, waits[shown] + sum(each.ms for each in links)), *_by_kind(case, idle)]
    made += [*_gaps(case, idle), *_matrix(case)]
    least = LEAST * case.length
    return sorted((each for each in made if each.ms >= least), key=lambda each: (-each.ms, each.id))


def _by_kind(case: Case, idle: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield what ops of one kind cost: the time in which only they run, of the host also that in which none runs."""
    for name in dict.fromkeys([*filter(None, case.kind), _HOST]):
        wanted, rows = case.kind == name, []
        spent = case.mean(idle[kinds.HOST] if name == _HOST else only(case.device, case.found, wanted))
        floor = sum(map(case.bound, np.flatnonzero(wanted))) if kinds.KINDS[name].replaced else 0.0
        rows = case.rows(np.flatnonzero(wanted), lambda place: reason(case.device.signatures[place]))
        rows += case.functions(_FUNCTIONS[name]) if name in _FUNCTIONS else []
        if name == _HOST:
            rows = rows or [Row("idle before the forward pass", "", "", 1.0, spent, "no op runs on the device")]
            rows += _loop(case, spent)
        yield Finding(name, spent, rows, floor)


def reason(each: Signature) -> str:
    """Return why an op belongs to its kind: its types, and on the AI CPU what to use instead."""
    if kinds.category(each) != kinds.AI_CPU:
        return each.core if each.types in ("", "N/A") else each.types
    types = sorted(set(re.findall(r"\w*(?:INT64|STRING|COMPLEX|DOUBLE)\w*", each.types.upper())))
    why = f"on the AI CPU for its type {', '.join(types)}" if types else "no kernel of the AI Core"
    return f"{why}; use {kinds.instead(each)}" if kinds.instead(each) else why


def _loop(case: Case, host: float) -> list[Row]:
    """Return the number of steps in one call after which the host takes less than 5 % of a step, if it takes more.

    The host works once for each call then. Its work for the data does not go: it belongs into the input pipeline.
    """
    rest = case.length - host
    if rest <= 0 or host <= _LOOP_GAPS * (host + rest):
        return []
    number = int(np.ceil(host * (1 - _LOOP_GAPS) / (_LOOP_GAPS * rest)))
    why = f"{host / number:.3f} ms of a step are left, if tf.data feeds it"
    return [Row(f"iterations_per_loop={number}", "util.set_iteration_per_loop", "", 1 / number, host / number, why)]


def _gaps(case: Case, idle: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield launch gaps, with the ops that are shorter than a launch if most are."""
    computes = case.device.category == kinds.COMPUTE
    calls, ms = case.sums(np.array([kinds.small(each) for each in case.device.signatures]) * computes)
    gaps = case.mean(idle[GAPS])
    if 2 * calls.sum() > case.calls[computes].sum():
        rows = []
        for places in case.groups(np.flatnonzero(calls), calls, ("type",))[:_MOST_ROWS]:
            number, took = float(calls[places].sum()), float(ms[places].sum())
            rows.append(case.row(places, f"{1000 * took / number:.1f} us a run")._replace(calls=number, ms=took))
        yield Finding("small-ops", gaps + float(ms.sum()), rows)
        return
    ops = len(case.code) / case.steps
    yield Finding("launch-gaps", gaps, [Row("idle between ops", "", "", ops, gaps, f"{ops:.0f} ops in a step")])


def _recompiles(case: Case, idle: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield what compiling costs, and take it out of the idle times."""
    functions = case.functions(_COMPILES.pattern)
    computing = np.flatnonzero(np.isin(case.device.category, (kinds.COMPUTE, kinds.AI_CPU)))
    shapes = [
        (each, {case.device.signatures[place].shapes for place in each}) for each in case.groups(computing, case.ms)
    ]
    several = [case.row(each, f"{len(found)} shapes") for each, found in shapes if len(found) > 1]
    slow = case.found.slow()
    if not functions and not several:
        return
    excess = np.where(slow, case.found.length - int(np.median(case.found.length)), 0)
    if not slow.any() and functions:
        excess = np.full(case.steps, int(sum(row.ms for row in functions) * 1e6))
    spent = np.zeros(case.steps, np.int64)
    for name in (kinds.HOST, GAPS):
        part = np.minimum(idle[name], excess - spent)
        idle[name] = idle[name] - part
        spent += part
    rows = functions + several
    if slow.any():
        rows.insert(0, Row("slow steps", "", "", float(slow.sum()), case.mean(spent), "3 times the median or more"))
    yield Finding("recompile", case.mean(spent), rows[:_MOST_ROWS])


def _waits(cases: Sequence[Case]) -> list[float]:
    """Return the milliseconds that each rank waits in collectives for a slower rank."""
    waits = [case.alone for case in cases]
    own = [case.length - case.alone for case in cases]
    slowest = int(np.argmax(own))
    is_slow = len(cases) > 1 and own[slowest] >= _SLOW_RANK * float(np.median(own))
    return [max(wait - waits[slowest], 0.0) * is_slow for wait in waits]


def _ranks(cases: Sequence[Case], waits: Sequence[float]) -> Iterator[Finding]:
    if max(waits) > 0:
        rows = []
        for case, wait in sorted(zip(cases, waits), key=lambda item: (item[1] > 0, -item[1], item[0].device.name)):
            why = f"{case.length - case.alone:.3f} ms of its own work, waits {wait:.3f} ms"
            rows.append(Row(f"rank {case.device.name}", "", "", 1.0, case.alone, why))
        yield Finding("slow-rank", sum(waits) / (len(waits) - 1), rows[:_MOST_ROWS])


def _links(cases: Sequence[Case], shown: int) -> Iterator[Finding]:
    speeds: dict[str, list[float]] = {}
    links = {each for case in cases for each in case.device.links if each.took > 0}
    for link in links:
        speeds.setdefault(link.transport, []).append(link.size / link.took)
    rows = []
    for link in links:
        speed, usual = link.size / link.took, float(np.median(speeds[link.transport]))
        if speed < _SLOW_LINK * usual:
            ms = (link.took - link.size / usual) / 1e6 / cases[shown].steps
            why = f"{speed:.1f} GB/s, the median is {usual:.1f}"
            rows.append(Row(f"rank {link.source} to {link.target}", link.transport, "", 1.0, ms, why))
    if rows:
        rows.sort(key=lambda row: (-row.ms, row))
        yield Finding("slow-link", min(rows[0].ms, cases[shown].alone), rows[:_MOST_ROWS])


def _messages(case: Case, elsewhere: float) -> Iterator[Finding]:
    """Yield the communication that nothing overlaps, without the time for a slower rank and slow links."""
    left = max(case.alone - elsewhere, 0.0)
    wanted = case.device.category == kinds.COMMUNICATION
    number, total = float(case.calls[wanted].sum()), float(case.ms[wanted].sum())
    if number:
        name = "many-messages" if number >= _MANY else "few-messages" if number <= _FEW else "communication"
        why = f"{number:.0f} messages in a step, {100 * (1 - case.alone / total) if total else 0:.0f} % overlapped"
        yield Finding(name, left, case.rows(np.flatnonzero(wanted), lambda place: why))


def _matrix(case: Case) -> Iterator[Finding]:
    """Yield what products and convolutions lose by a low use of the matrix unit, by its likely reason."""
    lost: dict[str, dict[int, float]] = {}
    for place in np.flatnonzero((case.calls > 0) & (case.kind == "")):
        each = case.device.signatures[place]
        if not kinds.is_matrix(each) or kinds.on_cpu(each):
            continue
        used = float(case.device.ratios[0][place])
        if not np.isfinite(used) and case.bound(place):
            used = case.bound(place) / case.ms[place]
        if used < _LOW:
            lost.setdefault(_why_low(each), {})[place] = case.ms[place] * (1 - used / _FULL)
    for name, members in lost.items():
        yield Finding(name, sum(members.values()), case.rows(members, lambda place: _use(case, place)))


def _use(case: Case, place: int) -> str:
    each, used = case.device.signatures[place], float(case.device.ratios[0][place])
    known = f"{100 * used:.0f} % of the matrix unit, " if np.isfinite(used) else ""
    return f"{known}{each.types} {each.shapes.strip(chr(34))}"


def _why_low(each: Signature) -> str:
    if re.search(r"(^|;)(DT_)?FLOAT(32)?(;|$)", each.types, re.I):
        return "matrix-float32"
    sizes = [size for shape in work.shapes(each.shapes)[:2] for size in shape[-2:]]
    if any(size % _TILE and size > 1 for size in sizes):
        return "matrix-sizes"
    rows = [shape for shape in work.shapes(each.shapes)[:1] if shape]
    if rows and int(np.prod(rows[0][:-1], dtype=np.int64)) < 8 * _TILE:
        return "matrix-batch"
    return "matrix-unit"
