"""The assessment of a script as data: what a card would make of its graphs. docs/assess.schema.json has its JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Optional, Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.predict.prediction import Prediction
from npu_shim.rehearsal.reports import report_head

JsonShape = Optional[Sequence[Optional[int]]]


@dataclass(frozen=True)
class Input:
    """A tensor that a graph is given, with its shape."""

    name: str
    shape: JsonShape


@dataclass(frozen=True)
class Operators:
    """The nodes of an operator type: number, status in the lists, work, and the lines of those off the device."""

    op: str
    count: int
    status: str
    flops: int
    bytes: int
    lines: list[str]


@dataclass(frozen=True)
class OnHost:
    """The nodes of an operator type that stay on the host.

    Attributes:
        op, count: the type, and the number of nodes.
        pulled: those that would run on the device if their neighbours did.
        cpu: True if the CPU has the operator.
        lines: of the script, that create them.
    """

    op: str
    count: int
    pulled: int
    cpu: bool
    lines: list[str]


@dataclass(frozen=True)
class Cut:
    """The nodes on the host, and how they cut the step; see partition.Partition."""

    host: list[OnHost]
    clusters: list[int]
    outside_largest: int
    loops: list[str]
    mix_compile_mode: bool


@dataclass(frozen=True)
class DynamicShape:
    """An operator that brings sizes into the graph that it does not know."""

    op: str
    name: str
    shape: JsonShape
    in_this_run: JsonShape
    unknown_tensors: int
    lines: list[str]


@dataclass(frozen=True)
class RareType:
    """A type of tensors that a card computes slowly or not at all."""

    dtype: str
    tensors: int
    operators: list[str]
    lines: list[str]


@dataclass(frozen=True)
class Collective:
    """The collectives of a type, and what they move."""

    op: str
    count: int
    bytes: int


@dataclass(frozen=True)
class Variable:
    """A variable."""

    name: str
    shape: JsonShape
    dtype: str
    bytes: int


@dataclass(frozen=True)
class Variables:
    """Number and size of the variables, and the largest ones."""

    count: int
    bytes: int
    largest: list[Variable]


@dataclass(frozen=True)
class LargeTensor:
    """A tensor that lives at the peak."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Activations:
    """The peak of the activations; see memory.Memory."""

    peak: int
    at: str
    unknown: int
    largest: list[LargeTensor]


@dataclass(frozen=True)
class NotCounted:
    """An operator type without a number of operations."""

    op: str
    why: str


@dataclass(frozen=True)
class Loop:
    """A loop, and how often it runs; None if that is not known."""

    name: str
    runs: int | None


@dataclass(frozen=True)
class WorkOfStep:
    """The work of a step: floating-point operations, bytes, loops, and what is not known."""

    flops: int
    matrix_flops: int
    bytes: int
    by_profiler: list[str]
    unknown: list[NotCounted]
    loops: list[Loop]


@dataclass(frozen=True)
class OpCount:
    """The number of nodes of an operator type."""

    op: str
    count: int


@dataclass(frozen=True)
class MixedPrecision:
    """The operators that mixed precision reduces and keeps, and the reduced share of the matrix unit's work."""

    mode: str
    reduced: list[OpCount]
    kept: list[OpCount]
    matrix_share: float


@dataclass(frozen=True)
class Roofline:
    """A bound on the time of a step, and the sum over operators that each read and write memory."""

    product: str
    source: str
    bound_seconds: float
    bound_by: str
    operators_seconds: float
    memory_share: float | None


@dataclass(frozen=True)
class Graph:
    """A graph that the script runs: for a training step, or for another run."""

    name: str
    kind: str
    line: str
    nodes: int
    inputs: list[Input]
    operators: list[Operators]
    partition: Cut
    dynamic_shapes: list[DynamicShape]
    dtypes: list[RareType]
    collectives: list[Collective]
    variables: Variables
    memory: Activations
    work: WorkOfStep
    precision: MixedPrecision
    roofline: Roofline | None
    prediction: Prediction | None = None


@dataclass(frozen=True)
class Problem:
    """A part of a graph that would not run on the card."""

    graph: str
    what: str
    why: str
    lines: list[str]


@dataclass(frozen=True)
class CompiledGraphs:
    """The graphs that a card compiles: before training, those that are assessed, and those with dynamic shapes."""

    before_training: int
    assessed: int
    for_each_new_shape: int


@dataclass(frozen=True)
class Assessment:
    """The assessment of a script."""

    script: str
    arguments: Sequence[str]
    tensorflow: str
    ranks: int
    operator_lists: str
    compiled_graphs: CompiledGraphs
    problems: list[Problem]
    graphs: list[Graph]

    def to_json(self) -> JsonObject:
        """Return what docs/assess.schema.json describes."""
        return {**report_head("assess"), **asdict(self)}


def job_assessment(ranks: Sequence[Assessment]) -> Assessment:
    """Return the assessments of all ranks of a job as one: that of rank 0 with the number of ranks.

    A problem is added for each rank whose collectives are not those of rank 0, because the job would then never end.
    """
    problems = list(ranks[0].problems)
    for rank, other in enumerate(ranks):
        for ours, theirs in zip(ranks[0].graphs, other.graphs):
            if ours.collectives != theirs.collectives:
                texts = f"{_collectives_text(theirs)} in place of {_collectives_text(ours)}"
                why = f"on rank {rank} are not those of rank 0: {texts}"
                problems.append(Problem(ours.name, "collectives", why, []))
    return replace(ranks[0], ranks=len(ranks), problems=problems)


def _collectives_text(graph: Graph) -> str:
    return ", ".join(f"{row.count} {row.op} of {row.bytes} bytes" for row in graph.collectives) or "none"
