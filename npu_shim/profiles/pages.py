"""The pages of a profile and of two as data, from which all reports are made. The schemas in docs/ have their JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.dumps.files import Problem
from npu_shim.profiles.devices import Evidence
from npu_shim.rehearsal.reports import report_head

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "no significant difference", "too few steps"


@dataclass(frozen=True)
class StepLength:
    """The steps that are shown, their lengths, and the number of slow ones and of those before them."""

    source: str
    number: int
    left_out: int
    slow: int
    mean_ms: float
    median_ms: float
    shortest_ms: float
    longest_ms: float


@dataclass(frozen=True)
class Wait:
    """The milliseconds in which a step waits for one unit, and their share of the step."""

    what: str
    ms: float
    share: float


@dataclass(frozen=True)
class Phase:
    """A phase of a step: milliseconds, their share of the step, and for which units it waits."""

    phase: str
    ms: float
    share: float
    waits: dict[str, float]


@dataclass(frozen=True)
class OpCost:
    """The cost of an op, or of a type of ops, in a step; None for a use or a bound that is not known."""

    name: str
    type: str
    line: str
    unit: str
    shapes: str
    calls: float
    ms: float
    share: float
    matrix: float | None = None
    vector: float | None = None
    memory: float | None = None
    bound_ms: float | None = None


@dataclass(frozen=True)
class AgainstPrediction:
    """A time of a step beside its prediction, in milliseconds, and of a type the runs of its ops; None if unknown."""

    what: str
    ms: float
    predicted_ms: float
    low_ms: float | None
    high_ms: float | None
    calls: float | None
    predicted_calls: int | None


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck: its cost, how many times as fast a step is at most with the fix, and the rows that show it."""

    id: str
    title: str
    fix: str
    see: str
    ms: float
    share: float
    gain: float | None
    evidence: Sequence[Evidence]


@dataclass
class Bar:
    """A bar of a timeline: runs of ops of one unit without a gap that can be seen, in milliseconds of the step."""

    what: str
    op: str
    start: float
    until: float
    runs: int = 1

    def to_json(self) -> JsonObject:
        return {"what": self.what, "op": self.op, "from": self.start, "until": self.until, "runs": self.runs}


@dataclass(frozen=True)
class DeviceTimes:
    """The steps and runs of a device, and the milliseconds of a step."""

    device: str
    steps: int
    runs: int
    mean_ms: float
    busy_ms: float
    communication_ms: float


@dataclass
class ProfilePage:
    """The page of a profile, with the step of the device that works longest; without runs of ops only types."""

    folder: str
    product: str | None
    files: dict[str, int]
    devices: Sequence[DeviceTimes]
    types: Sequence[OpCost]
    problems: Sequence[Problem]
    device: str | None = None
    step: StepLength | None = None
    waits: Sequence[Wait] = ()
    phases: Sequence[Phase] = ()
    ops: Sequence[OpCost] = ()
    findings: Sequence[Bottleneck] = ()
    prediction: Sequence[AgainstPrediction] = ()
    timeline: Sequence[Bar] = ()

    def to_json(self) -> JsonObject:
        """Return what docs/profile.schema.json describes."""
        return {**report_head("profile"), **asdict(self), "timeline": [bar.to_json() for bar in self.timeline]}


@dataclass(frozen=True)
class Change:
    """A time of a step before and after; the probability of such a difference by chance, None for too few steps."""

    what: str
    old_ms: float
    new_ms: float
    change: float | None
    p: float | None
    verdict: str


@dataclass(frozen=True)
class StepChange(Change):
    """The length of a step, and the numbers of steps."""

    old_steps: int
    new_steps: int


@dataclass(frozen=True)
class ProfileChanges:
    """The comparison of two profiles."""

    old: str
    new: str
    step: StepChange
    waits: Sequence[Change]
    phases: Sequence[Change]
    types: Sequence[Change]
    problems: Sequence[Problem]

    def to_json(self) -> JsonObject:
        """Return what docs/profile_comparison.schema.json describes."""
        return {**report_head("profile"), **asdict(self)}
