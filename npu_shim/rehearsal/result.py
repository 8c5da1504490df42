"""The result of ``npu-shim verify`` as data, from which the reports are made. docs/verify.schema.json has its JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Sequence

import npu_shim
from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.running import Run

if TYPE_CHECKING:
    from npu_shim.rehearsal.comparing.read_recording import Recording
    from npu_shim.rehearsal.half_result import HalfPart


AGREE, DIFFER, NOT_REPRODUCIBLE, NOT_RUN = "agree", "differ", "not reproducible", "not run"


@dataclass(frozen=True)
class RunPart:
    """The part about one script: how it ran and ended. ``precision``: of its ops, with ``--half``."""

    script: str
    arguments: Sequence[str]
    converted_in_memory: bool
    ranks: int
    exit_code: int
    completed: bool
    steps: int
    seconds: float | None
    seconds_per_step: float | None
    peak_bytes: int | None
    python: str | None
    tensorflow: str | None
    log: str
    restored: Sequence[str] = ()
    precision: str | None = None


def run_part(run: Run, code: int, recordings: Sequence[Recording], precision: str | None = None) -> RunPart:
    """Return the part of a result about one script.

    Args:
        run: the run.
        code: its exit code.
        recordings: of its ranks; empty if the process has not started the script.
        precision: of its ops, with ``--half``.
    """
    first = recordings[0] if recordings else None
    ends = [recording.end for recording in recordings]
    return RunPart(
        script=run.script,
        arguments=list(run.arguments),
        converted_in_memory=run.convert is not None,
        ranks=run.ranks or 1,
        exit_code=code,
        completed=bool(ends) and code == 0 and all(end is not None and end.ended == "returned" for end in ends),
        steps=first.steps if first else 0,
        seconds=first.end.seconds if first and first.end else None,
        seconds_per_step=first.seconds_per_step if first else None,
        peak_bytes=max((end.peak_bytes for end in ends if end and end.peak_bytes), default=None),
        python=first.python if first else None,
        tensorflow=first.notes.tensorflow if first else None,
        log=run.log_path,
        restored=list(first.restored) if first else [],
        precision=precision,
    )


@dataclass(frozen=True)
class Terms:
    """The settings of a comparison: those of verifying.Settings, and of the first run of the original."""

    tolerance: float
    seed: int
    seeds: int | None
    deterministic: bool
    every: int
    steps: int | None = None


@dataclass(frozen=True)
class Change:
    """A change of numbers that the migration makes on purpose: rule, clause, cost, place."""

    code: str
    change: str
    cost: str
    place: str


@dataclass(frozen=True)
class Itself:
    """The first value by which the original departs from itself, with the line of the script and the cause."""

    step: int
    kind: str
    name: str
    values: str
    line: str | None
    cause: str | None


@dataclass(frozen=True)
class Element:
    """Both values of one element of a tensor."""

    index: Sequence[int]
    original: str
    migrated: str


@dataclass(frozen=True)
class Departing:
    """A value that departs. A difference that is not finite is None."""

    kind: str
    name: str
    values: str
    difference: float | None
    allowed: float


@dataclass
class FirstDeparture:
    """The first value that departs, the others of its step, and the elements that differ most."""

    step: int
    kind: str
    name: str
    values: str
    difference: float | None
    allowed: float
    tensors_departing_there: int
    tensors: list[Departing]
    elements: list[Element] = field(default_factory=list)


@dataclass(frozen=True)
class StreamPart:
    """All values of one name."""

    kind: str
    name: str
    migrated_name: str
    dtype: str
    shape: Sequence[int]
    values_original: int
    values_migrated: int
    largest_difference: float | None
    first_departure_step: int | None


@dataclass(frozen=True)
class LossPoint:
    """The loss of both at a step."""

    step: int
    original: float | None
    migrated: float | None


@dataclass(frozen=True)
class Point(LossPoint):
    """A step: the loss, and the largest difference of all values."""

    difference: float | None


@dataclass(frozen=True)
class HalfPoint(Point):
    """A step with ``--half``: also the difference of the loss, its band, and the largest share of a band."""

    loss_difference: float | None
    loss_band: float | None
    share: float | None


@dataclass(frozen=True)
class Loss:
    """One loss of several."""

    name: str
    migrated_name: str
    curve: list[LossPoint]


@dataclass(frozen=True)
class Metric:
    """A metric of an evaluation."""

    name: str
    number: int
    original: float | None
    migrated: float | None


@dataclass(frozen=True)
class FinalVariable:
    """A variable at the end."""

    name: str
    shape: Sequence[int]
    difference: float | None


@dataclass(frozen=True)
class Alone:
    """A name that one script has, and the number of its values."""

    kind: str
    name: str
    values: int


@dataclass(frozen=True)
class MeanBand:
    """With several seeds: the means of a quantity and the band of their difference."""

    kind: str
    name: str
    original: float | None
    migrated: float | None
    band: float | None
    inside: bool


@dataclass
class Result:
    """The result. result_values.py fills what the comparison of two recordings has, half_result.py what ``--half`` has.

    Attributes:
        verdict: AGREE, DIFFER, NOT_REPRODUCIBLE or NOT_RUN.
        settings: of the comparison.
        original, migrated: about the scripts.
        problems: sentences, each about one difference or failure.
        deliberate: the changes that both scripts have, because the migration makes them on purpose.
        first_departure: None if none departs.
        itself: the departure of the original from itself.
        unsteady_prints: the printed numbers that the original does not repeat.
        enlarged_rounding: True if the scripts depart no further than rounding lets the original depart from itself.
        forced_order: sentences about reads and updates that the original does not order, and the comparison does.
        streams, curve, losses, metrics, final_variables: what was compared.
        undetermined_variables, redefined: names of what was not compared.
        only_original, only_migrated: what only one script has.
        bands: of several seeds.
        half: about half precision.
    """

    verdict: str
    settings: Terms
    original: RunPart
    migrated: RunPart
    problems: list[str] = field(default_factory=list)
    deliberate: list[Change] = field(default_factory=list)
    first_departure: FirstDeparture | None = None
    itself: Itself | None = None
    unsteady_prints: list[str] = field(default_factory=list)
    enlarged_rounding: bool = False
    forced_order: list[str] = field(default_factory=list)
    streams: list[StreamPart] = field(default_factory=list)
    curve: Sequence[Point] = ()
    losses: list[Loss] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    final_variables: list[FinalVariable] = field(default_factory=list)
    undetermined_variables: list[str] = field(default_factory=list)
    redefined: list[str] = field(default_factory=list)
    only_original: list[Alone] = field(default_factory=list)
    only_migrated: list[Alone] = field(default_factory=list)
    bands: list[MeanBand] = field(default_factory=list)
    half: HalfPart | None = None
    tool_version: str = npu_shim.__version__

    def to_json(self) -> JsonObject:
        """Return what docs/verify.schema.json describes."""
        content = asdict(self)
        head = {"schema_version": 1, "tool": "npu-shim verify", "tool_version": content.pop("tool_version")}
        for part, optional in (
            (content["original"], "precision"),
            (content["migrated"], "precision"),
            (content, "half"),
        ):
            if part[optional] is None:
                del part[optional]
        return {**head, **content}

    @classmethod
    def from_json(cls, content: JsonObject) -> Result:
        """Return the result that to_json() of this release or an earlier one made, without ``--half``."""
        lists = {
            "deliberate": Change,
            "streams": StreamPart,
            "curve": Point,
            "metrics": Metric,
            "final_variables": FinalVariable,
            "only_original": Alone,
            "only_migrated": Alone,
            "bands": MeanBand,
        }
        given = {name: value for name, value in content.items() if name not in ("schema_version", "tool")}
        given.update({name: [make(**row) for row in given[name]] for name, make in lists.items() if name in given})
        given.update(settings=Terms(**given["settings"]))
        given.update({side: RunPart(**given[side]) for side in ("original", "migrated")})
        if given.get("losses"):
            given["losses"] = [
                Loss(**{**row, "curve": [LossPoint(**point) for point in row["curve"]]}) for row in given["losses"]
            ]
        if given.get("itself"):
            given["itself"] = Itself(**given["itself"])
        first = given.get("first_departure")
        if first:
            tensors = [Departing(**row) for row in first["tensors"]]
            elements = [Element(**row) for row in first.get("elements", ())]
            given["first_departure"] = FirstDeparture(**{**first, "tensors": tensors, "elements": elements})
        return cls(**given)
