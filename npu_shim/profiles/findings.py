"""Bottlenecks: which there are, what each costs, which rows show it, and how much a fix gains at most."""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np

from npu_shim.profiles import kinds, work
from npu_shim.profiles.breakdown import GAPS, Breakdown, only, within
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.profile import Device, Profile
from npu_shim.rehearsal.assess.products import Product

LEAST = 0.03  # of a step, below which a cost is no finding
_MOST_ROWS = 5
_FULL = 0.8  # use of the matrix unit that large products reach
_LOW = 0.5
_TILE = 16  # elements of the matrix unit in each direction
_FEW, _MANY = 2, 32  # messages of gradients in a step
_COMPILES = re.compile("compile|buildgraph|graphprepare|retrace", re.I)
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
        saved: the time that a fix saves at most.
        evidence: the rows that cost most.
    """

    id: str
    ms: float
    saved: float
    evidence: list[Row]


class Case:
    """A device with its breakdown, ready for the search."""

    def __init__(self, profile: Profile, device: Device, found: Breakdown, product: Product | None) -> None:
        self.profile, self.device, self.found, self.product = profile, device, found, product
        self.steps = len(found.length)
        self.on_cpu = any(kinds.on_cpu(each) for each in device.signatures)
        kept = within(device)
        code = device.code[kept]
        number = len(device.signatures)
        self.took = (device.end - device.start)[kept]
        self.code = code
        self.calls = np.bincount(code, minlength=number) / self.steps
        self.ms = np.bincount(code, self.took, number) / self.steps / 1e6
        self.kind = np.array([kinds.kind(each) for each in device.signatures], object)

    def mean(self, nanoseconds: np.ndarray) -> float:
        """Return the mean over the steps in milliseconds."""
        return float(nanoseconds.sum()) / self.steps / 1e6

    def bound(self, place: int) -> float:
        """Return the milliseconds that an op takes in a step at least; 0 without a product."""
        return (
            work.bound(self.device.signatures[place], self.product) * self.calls[place] / 1e6 if self.product else 0.0
        )

    def rows(self, wanted: np.ndarray, why: Callable[[int], str] = lambda place: "") -> list[Row]:
        """Return the rows of wanted ops that cost most; runs of one op with other shapes are one row."""
        sums: dict[tuple[str, str], list[Any]] = {}
        for place in np.flatnonzero(wanted & (self.calls > 0)):
            each = self.device.signatures[place]
            row = sums.setdefault((each.name, each.type), [0.0, 0.0, place])
            row[0] += self.calls[place]
            row[1] += self.ms[place]
        most = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))[:_MOST_ROWS]
        return [
            Row(name, of_type, self.profile.lines.of(name, of_type), float(calls), float(ms), why(place))
            for (name, of_type), (calls, ms, place) in most
        ]

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
    made = [
        *_recompiles(case, idle),
        *_ranks(cases),
        *_links(cases, shown),
        *_messages(cases, shown),
        *_by_kind(case, idle),
        *_gaps(case, idle),
    ]
    made += _matrix(case)
    least = LEAST * case.mean(case.found.length)
    return sorted((each for each in made if each.ms >= least), key=lambda each: (-each.ms, each.id))


def _by_kind(case: Case, idle: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield what ops of one kind cost: the time in which only they run, of the host also that in which none runs."""
    for name in dict.fromkeys([*case.kind, "host-bound"]):
        wanted = case.kind == name
        if not name:
            continue
        of_host = name == "host-bound"
        spent = idle[kinds.HOST] if of_host else only(case.device, case.found, wanted)
        floor = sum(case.bound(place) for place in np.flatnonzero(wanted)) if kinds.KINDS[name].replaced else 0.0
        rows = case.rows(wanted, lambda place: _reason_of_kind(case.device.signatures[place]))
        rows += (
            case.functions("^(host|python)" if of_host else "^pipeline|GetNext")
            if name in ("host-bound", "data-bound")
            else []
        )
        if of_host and not rows:
            rows = [Row("idle before the forward pass", "", "", 1.0, case.mean(spent), "no op runs on the device")]
        ms = case.mean(spent)
        rows += _loop(case, ms) if of_host else []
        yield Finding(name, ms, max(ms - floor, 0.0), rows)


def _reason_of_kind(each: Signature) -> str:
    if kinds.category(each) != kinds.AI_CPU:
        return each.core if each.types in ("", "N/A") else each.types
    types = sorted(set(re.findall(r"\w*(?:INT64|STRING|COMPLEX|DOUBLE)\w*", each.types.upper())))
    return f"on the AI CPU for its type {', '.join(types)}" if types else "no kernel of the AI Core"


def _loop(case: Case, host: float) -> list[Row]:
    """Return the number of steps in one call after which the host takes less than 5 % of a step, if it takes more.

    The host works once for each call then. Its work for the data does not go: it belongs into the input pipeline.
    """
    rest = case.mean(case.found.length) - host
    if rest <= 0 or host <= _LOOP_GAPS * (host + rest):
        return []
    number = int(np.ceil(host * (1 - _LOOP_GAPS) / (_LOOP_GAPS * rest)))
    why = f"{host / number:.3f} ms of a step are left, if tf.data feeds it"
    return [Row(f"iterations_per_loop={number}", "util.set_iteration_per_loop", "", 1 / number, host / number, why)]


def _gaps(case: Case, idle: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield launch gaps, with the ops that are shorter than a launch if most are."""
    limit = np.array([kinds.small(each) for each in case.device.signatures], np.int32)[case.code]
    computes = (case.device.category == kinds.COMPUTE)[case.code]
    short = computes & (case.took < limit)
    gaps = case.mean(idle[GAPS])
    if 2 * np.count_nonzero(short) > np.count_nonzero(computes):
        ms = gaps + float(case.took[short].sum()) / case.steps / 1e6
        yield Finding("small-ops", ms, ms, _by_type(case, short))
        return
    number = len(case.code) / case.steps
    yield Finding(
        "launch-gaps", gaps, gaps, [Row("idle between ops", "", "", number, gaps, f"{number:.0f} ops in a step")]
    )


def _by_type(case: Case, runs: np.ndarray) -> list[Row]:
    """Return the types of some runs, those with most of them first."""
    calls = np.bincount(case.code[runs], minlength=len(case.device.signatures)) / case.steps
    took = np.bincount(case.code[runs], case.took[runs], len(case.device.signatures)) / case.steps
    members: dict[str, list[int]] = {}
    for place in np.flatnonzero(calls):
        members.setdefault(case.device.signatures[place].type, []).append(int(place))
    most = sorted(members.items(), key=lambda item: (-calls[item[1]].sum(), item[0]))[:_MOST_ROWS]
    return [
        Row(
            case.device.signatures[places[0]].name,
            name,
            case.profile.lines.of(case.device.signatures[places[0]].name, name),
            float(calls[places].sum()),
            float(took[places].sum()) / 1e6,
            f"{took[places].sum() / calls[places].sum() / 1e3:.1f} us a run",
        )
        for name, places in most
    ]


def _recompiles(case: Case, idle: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield what compiling costs, and take it out of the idle times."""
    functions = case.functions(_COMPILES.pattern)
    shapes: dict[tuple[str, str], set[str]] = {}
    for place in np.flatnonzero(case.calls > 0):
        each = case.device.signatures[place]
        if case.device.category[place] in (kinds.COMPUTE, kinds.AI_CPU):
            shapes.setdefault((each.name, each.type), set()).add(each.shapes)
    several = {key for key, found in shapes.items() if len(found) > 1}
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
    wanted = np.array([(each.name, each.type) in several for each in case.device.signatures])
    rows = functions + case.rows(wanted, lambda place: f"{len(shapes[_key(case, place)])} shapes")
    if slow.any():
        rows.insert(0, Row("slow steps", "", "", float(slow.sum()), case.mean(spent), "3 times the median or more"))
    yield Finding("recompile", case.mean(spent), case.mean(spent), rows[:_MOST_ROWS])


def _key(case: Case, place: int) -> tuple[str, str]:
    return case.device.signatures[place].name, case.device.signatures[place].type


def alone(case: Case) -> float:
    """Return the milliseconds of communication in a step that nothing overlaps."""
    return case.mean(case.found.waits[kinds.COMMUNICATION].sum(axis=1))


def _waiting(cases: Sequence[Case], shown: int) -> tuple[float, int]:
    """Return the milliseconds that a rank waits in collectives for a slower rank, and the place of that rank."""
    waits = [alone(case) for case in cases]
    own = [case.mean(case.found.length) - wait for case, wait in zip(cases, waits)]
    slowest = int(np.argmax(own))
    if len(cases) < 2 or own[slowest] < _SLOW_RANK * float(np.median(own)):
        return 0.0, slowest
    return max(waits[shown] - waits[slowest], 0.0), slowest


def _ranks(cases: Sequence[Case]) -> Iterator[Finding]:
    waits = [_waiting(cases, place)[0] for place in range(len(cases))]
    _, slowest = _waiting(cases, 0)
    if max(waits) > 0:
        rows = []
        for place, case in enumerate(cases):
            why = f"{case.mean(case.found.length) - alone(case):.3f} ms of its own work, waits {waits[place]:.3f} ms"
            rows.append(
                (place != slowest, -waits[place], Row(f"rank {case.device.name}", "", "", 1.0, alone(case), why))
            )
        cost = float(np.mean([wait for place, wait in enumerate(waits) if place != slowest]))
        yield Finding("slow-rank", cost, cost, [row for *_, row in sorted(rows)[:_MOST_ROWS]])


def _links(cases: Sequence[Case], shown: int) -> Iterator[Finding]:
    links: dict[str, list[tuple[float, Any]]] = {}
    for link in {each for case in cases for each in case.device.links if each.took > 0}:
        links.setdefault(link.transport, []).append((link.size / link.took, link))
    rows = []
    for transport, members in links.items():
        usual = float(np.median([speed for speed, _ in members]))
        for speed, link in members:
            if speed < _SLOW_LINK * usual:
                ms = (link.took - link.size / usual) / 1e6 / cases[shown].steps
                why = f"{speed:.1f} GB/s, the median is {usual:.1f}"
                rows.append(Row(f"rank {link.source} to {link.target}", transport, "", 1.0, ms, why))
    if rows:
        rows.sort(key=lambda row: -row.ms)
        cost = min(rows[0].ms, alone(cases[shown]))
        yield Finding("slow-link", cost, cost, rows[:_MOST_ROWS])


def _messages(cases: Sequence[Case], shown: int) -> Iterator[Finding]:
    """Yield the communication that nothing overlaps, without the time for a slower rank and slow links."""
    case = cases[shown]
    elsewhere = _waiting(cases, shown)[0] + sum(each.ms for each in _links(cases, shown))
    left = max(alone(case) - elsewhere, 0.0)
    wanted = case.device.category == kinds.COMMUNICATION
    number, total = float(case.calls[wanted].sum()), float(case.ms[wanted].sum())
    if not number:
        return
    name = "many-messages" if number >= _MANY else "few-messages" if number <= _FEW else "communication"
    why = f"{number:.0f} messages in a step, {100 * (1 - alone(case) / total) if total else 0:.0f} % overlapped"
    yield Finding(name, left, left, case.rows(wanted, lambda place: why))


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
            lost.setdefault(_reason(each), {})[place] = case.ms[place] * (1 - used / _FULL)
    for name, members in lost.items():
        wanted = np.zeros(len(case.device.signatures), bool)
        wanted[list(members)] = True
        ms = sum(members.values())
        rows = case.rows(wanted, lambda place: _use(case, place))
        yield Finding(name, ms, ms, rows)


def _use(case: Case, place: int) -> str:
    each, used = case.device.signatures[place], float(case.device.ratios[0][place])
    known = f"{100 * used:.0f} % of the matrix unit, " if np.isfinite(used) else ""
    return f"{known}{each.types} {each.shapes.strip(chr(34))}"


def _reason(each: Signature) -> str:
    if re.search(r"(^|;)(DT_)?FLOAT(32)?(;|$)", each.types, re.I):
        return "matrix-float32"
    sizes = [size for shape in work.shapes(each.shapes)[:2] for size in shape[-2:]]
    if any(size % _TILE and size > 1 for size in sizes):
        return "matrix-sizes"
    rows = [shape for shape in work.shapes(each.shapes)[:1] if shape]
    if rows and int(np.prod(rows[0][:-1], dtype=np.int64)) < 8 * _TILE:
        return "matrix-batch"
    return "matrix-unit"
