"""The prediction of a step on a processor as data. docs/assess.schema.json has its JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """A predicted number and its range: of the device by the measured profiles, of a step by the published steps."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PredictedOp:
    """An op of the device, as often as the step runs it with these shapes.

    Attributes:
        type: on the device; a fused op has the types of its parts.
        count: runs in a step.
        seconds: of all of them.
        phase: "forward", "backward" or "update".
        limit: what takes most of its time: "matrix unit", "memory", "launch", "rows" or "AI CPU".
        measured: "type" if ops of this type were measured on this family of processors, else "other family", "class"
            or "unit".
        inputs, outputs: shapes with types and layouts, such as "DT_FLOAT16;ND[32,1024]".
        lines: of the script, that create its operators.
    """

    type: str
    count: int
    seconds: float
    phase: str
    limit: str
    measured: str
    inputs: list[str]
    outputs: list[str]
    lines: list[str]


@dataclass(frozen=True)
class Share:
    """Seconds of a step by what takes them: a phase, a limit."""

    name: str
    seconds: float


@dataclass(frozen=True)
class PredictedMemory:
    """Bytes of the device's memory that a step needs; of the card 0 if they are not known.

    Attributes:
        parameters, optimizer, activations, workspace: what they are for.
        card: bytes of the card.
        batch: examples of a step on one rank; None if the graph does not say.
        largest_batch: the largest batch that fits; None if it is not known.
        why: the largest batch is not known; "" if it is.
    """

    parameters: int
    optimizer: int
    activations: int
    workspace: int
    card: int
    batch: int | None
    largest_batch: int | None
    why: str


@dataclass(frozen=True)
class Gain:
    """A change of a script, the seconds of a step that it saves, and the page that describes it."""

    advice: str
    seconds: float
    page: str


@dataclass(frozen=True)
class OnRanks:
    """A step on a number of ranks: seconds of it, of its collectives, of those that no op hides, and the efficiency."""

    ranks: int
    seconds: float
    collectives: float
    exposed: float
    efficiency: float


@dataclass(frozen=True)
class Proposal:
    """An option, its proposed value, what it saves of a step, and why."""

    option: str
    value: str
    seconds: float
    why: str


@dataclass(frozen=True)
class Prediction:
    """The time of a step on a processor, its parts, and the changes that shorten it.

    Attributes:
        processor: its name.
        device: seconds of the ops of a step.
        step: seconds of a step with what the host adds.
        examples: a second; None if the graph does not say its batch.
        phases, limits: seconds of the ops by phase and by what limits them.
        ops: by their seconds, the longest first.
        not_measured: number of runs of ops in a step whose type was not measured on the family of the processor.
        op_runs: number of runs of ops in a step.
        unknown_sizes: number of those with sizes that only values decide, which count as 1.
        bounded_sizes: number of those with sizes that only values decide, which count as the most that they can be.
        bounded_seconds: of these.
        unknown_loops: the loops that count once, because the graph does not say how often they run.
        unknown_branches: the conditions of which the dearer branch counts, because the graph does not decide it.
        steps_in_call: the steps that the host starts with one call.
        host: seconds that the host needs for a step at most; they are a part of `step`.
        input_rate: batches a second of the input pipeline on this machine; None if it was not measured.
        input_ranks: number of ranks of a server, which all read on its host.
        memory: of the device.
        gains, ranks, proposals: see their classes.
        edit: lines of Python that set the proposals in the script.
    """

    processor: str
    device: Range
    step: Range
    examples: Range | None
    phases: list[Share]
    limits: list[Share]
    ops: list[PredictedOp]
    not_measured: int
    op_runs: int
    unknown_sizes: int
    bounded_sizes: int
    bounded_seconds: float
    unknown_loops: list[str]
    unknown_branches: list[str]
    steps_in_call: int
    host: float
    input_rate: float | None
    input_ranks: int
    memory: PredictedMemory
    gains: list[Gain]
    ranks: list[OnRanks]
    proposals: list[Proposal]
    edit: list[str]
