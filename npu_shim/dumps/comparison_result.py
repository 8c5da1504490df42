"""The result of a comparison of dumps as data, from which the reports are made. docs/dumps.schema.json has its JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Iterable, Sequence

from npu_shim._tensorflow.types import JsonObject, Value
from npu_shim.dumps.figures import Figures
from npu_shim.dumps.files import Problem
from npu_shim.rehearsal.reports import report_head

AGREES, DEPARTS, NOT_COMPARED = "agrees", "departs", "not compared"


@dataclass
class ComparedTensor:
    """A tensor of the device and its output of TensorFlow.

    Attributes:
        step: -1 if it is unknown.
        operator, type, originals: of the device, and the ops that it was made from.
        slot: SIDE:INDEX of the operator.
        op, line: OP:OUTPUT of TensorFlow, and its line in the script.
        device_type, reference_type, layout, shape: of both.
        state: AGREES, DEPARTS or NOT_COMPARED.
        why: the reasons for the state.
        cause: what the difference looks like.
        file: of the dump.
        figures: of the difference; None if it was not compared.
    """

    step: int
    operator: str
    type: str
    originals: Sequence[str]
    slot: str
    op: str
    line: str
    device_type: str
    reference_type: str
    layout: str
    shape: Sequence[int]
    state: str = NOT_COMPARED
    why: Sequence[str] = ()
    cause: str = ""
    file: str = ""
    figures: Figures | None = None


@dataclass
class Departure(ComparedTensor):
    """The first output that departs, the state of its inputs, and the path to it from an input of the graph."""

    inputs: str = NOT_COMPARED
    path: Sequence[ComparedTensor] = ()


@dataclass
class TypeOutputs:
    """The outputs of the operators of one type: their number, how many depart, and the worst figures."""

    type: str
    outputs: int
    departing: int
    largest_distance: float
    least_cosine: float


@dataclass
class Unpaired:
    """Names of one side without a pair on the other, and the cause; of many only the first."""

    side: str
    cause: str
    number: int
    names: Sequence[str]


@dataclass
class DumpComparison:
    """The comparison of two folders of dumps."""

    device: str
    reference: str
    graphs: Sequence[str]
    verdict: str
    pairs: int
    states: dict[str, int]
    first_departure: Departure | None
    types: Sequence[TypeOutputs]
    tensors: Sequence[ComparedTensor]
    unpaired: Sequence[Unpaired]
    problems: Sequence[Problem] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Return what docs/dumps.schema.json describes."""
        return {**report_head("dumps compare"), **asdict(self, dict_factory=_json_cells)}


def finite_or_none(number: float) -> float | None:
    """Return a number, None for Inf and NaN, which JSON has not."""
    return number if math.isfinite(number) else None


def _json_cells(cells: Iterable[tuple[str, Value]]) -> JsonObject:
    return {name: _json_value(value) for name, value in cells}


def _json_value(value: Value) -> Value:
    if isinstance(value, tuple):
        return list(map(_json_value, value))
    return finite_or_none(value) if isinstance(value, float) else value
