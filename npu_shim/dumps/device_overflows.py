"""Overflows that the device reported: the first operator of each step, and whether a loss scale explains it.

A dynamic loss scale grows until a gradient overflows; the step is skipped and the scale falls. So single overflows in
the gradients are normal. These are not: an overflow in the forward pass, which no loss scale reaches; more steps in a
row than the scale needs to fall; a scale at 1; any overflow with a fixed scale, which trains on with it. An overflow in
the zeros that fill up a memory format such as FRACTAL_NZ is harmless, but a dynamic scale falls because of it.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import asdict, dataclass, field
from typing import Sequence

import numpy as np

from npu_shim._tensorflow.types import JsonObject
from npu_shim.dumps import dump, files, formats, graph_files, op_debug
from npu_shim.dumps.dump import DumpData, Tensor
from npu_shim.dumps.limits import LARGEST_HALF
from npu_shim.rehearsal.reports import report_head

NORMAL, NOT_NORMAL, UNDECIDED = "normal", "not normal", "normal with a dynamic loss scale only"
_GRADIENT = re.compile(r"(^|/|_)(gradients?(_\d+)?|gradient_tape|grad)(/|_|$)|Backprop|Grad$", re.I)
_FORWARD = "it is in the forward pass, which no loss scale reaches: keep the operator in float32"
_PADDING = (
    "its numbers are finite: the zeros overflow that fill up its memory format, and no result uses them. Use "
    "FixedLossScaleManager(loss_scale, enable_overflow_check=False)"
)
_MOST_IN_A_ROW = 10  # steps: from 2**15, the scale that most scripts start with, down to 2**5


@dataclass
class TensorRange:
    """The values of a tensor: the least and the largest finite one, and the number of Inf, NaN and 65504."""

    type: str
    shape: Sequence[int]
    problem: str = ""
    low: float | None = None
    high: float | None = None
    not_finite: int = 0
    saturated: int = 0


@dataclass
class Overflow:
    """An overflow that the device reported, its operator, and what it means.

    Attributes:
        step, time: -1 for an unknown step.
        unit, status, task, stream: of the report.
        operator, type, originals: of the device, and the ops that it was made from; empty without its dump.
        inputs, outputs: of the operator.
        file, dump: of the report and of the operator, None without one.
        first: True for the first one of a step.
        verdict, reason: NORMAL, NOT_NORMAL or UNDECIDED, and why.
        loss_scale: in the step; None if it is unknown.
    """

    step: int
    time: int
    unit: str
    status: int
    task: int
    stream: int
    operator: str
    type: str
    originals: Sequence[str]
    inputs: Sequence[TensorRange]
    outputs: Sequence[TensorRange]
    file: str
    dump: str | None
    first: bool = False
    verdict: str = UNDECIDED
    reason: str = ""
    loss_scale: float | None = None


@dataclass
class OverflowReport:
    """The overflows of a folder. ``loss_scale``: "fixed", "dynamic" or "unknown"."""

    folder: str
    loss_scale: str
    verdict: str
    overflows: Sequence[Overflow]
    problems: Sequence[files.Problem] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Return what docs/overflow.schema.json describes."""
        return {**report_head("dumps overflow"), **asdict(self)}


def find_overflows(folder: str, graphs: list[str], loss_scale: dict[int, float] | float | None) -> OverflowReport:
    """Return the overflows in a folder.

    Args:
        folder: of the dumps.
        graphs: further folders with graph files.
        loss_scale: by step, or a fixed one; None if unknown.
    """
    dump_files, problems = files.find_dump_files_and_problems(folder)
    ops, _ = graph_files.read_built_graphs_and_paths([folder, *graphs], problems)
    reports: list[op_debug.Report] = []
    debug = [file for file in dump_files if file.op_type == files.OP_DEBUG]
    debug.sort(key=lambda file: not file.path.endswith(".json"))  # a report counts more than the JSON made of it
    for file in {file.path.partition(".output.")[0]: file for file in debug}.values():
        with files.collect_problem(problems, file.path):
            reports += op_debug.read_reports(file)
    reports.sort(key=lambda report: (report.file.step, report.file.time))
    judged = [_overflow_and_is_in_padding(report, dump_files, ops, problems) for report in reports]
    _set_verdicts(judged, loss_scale)
    overflows = [overflow for overflow, _ in judged]
    verdict = NOT_NORMAL if NOT_NORMAL in {overflow.verdict for overflow in overflows} else NORMAL
    kind = "fixed" if isinstance(loss_scale, float) else "dynamic" if loss_scale else "unknown"
    return OverflowReport(folder, kind, verdict if overflows else "none", overflows, files.problem_list(problems))


def parse_loss_scale(text: str) -> dict[int, float] | float:
    """Return the loss scales that an argument gives: a number, or a file with a step and a scale on each line.

    Raises:
        ValueError: it is neither.
    """
    if not os.path.exists(text):
        try:
            return float(text)
        except ValueError as error:
            raise ValueError(
                f"file not found: {text}. Give a number, or a file with STEP,SCALE on each line"
            ) from error
    scales: dict[int, float] = {}
    with open(text, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                scales.update([(int(step), float(scale)) for step, scale in [line.replace(",", " ").split()]])
            except ValueError as error:
                if line.strip():
                    raise ValueError(f"{text}:{number}: {line.strip()[:80]!r} is not STEP,SCALE") from error
    return scales


def _overflow_and_is_in_padding(
    report: op_debug.Report,
    dump_files: list[files.DumpFile],
    ops: dict[str, graph_files.GraphOp],
    problems: files.Problems,
) -> tuple[Overflow, bool]:
    """Return an overflow that is not judged yet, and True if only what fills its memory format up can overflow."""
    place = os.path.dirname(report.file.path)
    beside = (file for file in dump_files if file.op_type != files.OP_DEBUG and os.path.dirname(file.path) == place)
    file = min(filter(report.is_about, beside), key=lambda dumped: dumped.time, default=files.DumpFile())
    data = next(iter(dump.read_dumps([file] if file.path else [], problems)), DumpData(file.op_name, file=file))
    data.op = ops.get(files.name_in_files(data.op_name))
    overflow = Overflow(
        step=report.file.step,
        time=report.file.time,
        unit=report.unit,
        status=report.status,
        task=report.file.task,
        stream=report.file.stream,
        operator=data.name,
        type=data.type,
        originals=data.originals or [],
        inputs=list(map(_tensor_range, data.inputs)),
        outputs=list(map(_tensor_range, data.outputs)),
        file=report.file.path,
        dump=file.path or None,
    )
    return overflow, _is_overflow_in_padding(data, [*overflow.inputs, *overflow.outputs])


def _is_overflow_in_padding(data: DumpData, ranges: Sequence[TensorRange]) -> bool:
    """Return True if all numbers of an operator are finite, and the memory format of a tensor is filled up."""
    is_padded = any(
        formats.product(tensor.shape) > formats.product(tensor.original_shape)
        for tensor in [*data.inputs, *data.outputs]
    )
    return is_padded and all(
        values.high is not None and not (values.not_finite or values.saturated) for values in ranges
    )


def _tensor_range(tensor: Tensor) -> TensorRange:
    values = TensorRange(dump.type_name(tensor), list(tensor.original_shape))
    try:
        array = _tensor_elements(tensor)
    except ValueError as error:
        values.problem = str(error)
        return values
    array = np.abs(array) if array.dtype.kind == "c" else array
    finite = array[np.isfinite(array)]
    if finite.size:
        values.low, values.high = float(finite.min()), float(finite.max())
    values.not_finite = int(array.size - finite.size)
    values.saturated = int((np.abs(finite) == LARGEST_HALF).sum()) if values.type == "float16" else 0
    return values


def _tensor_elements(tensor: Tensor) -> np.ndarray:
    """Return the elements that a tensor has in the graph; those in memory if its layout is unknown."""
    try:
        return dump.tensor_in_graph_shape(tensor)
    except formats.DumpError:
        return dump.elements_in_memory(tensor)


def _set_verdicts(overflows: list[tuple[Overflow, bool]], loss_scale: dict[int, float] | float | None) -> None:
    """Set verdict, reason and loss scale of overflows, which are sorted."""
    in_a_row = _consecutive_counts(sorted({overflow.step for overflow, _ in overflows}))
    step = None
    is_fixed = isinstance(loss_scale, float)
    for overflow, is_in_padding in overflows:
        overflow.first, step = overflow.step != step, overflow.step
        scale = loss_scale if isinstance(loss_scale, float) else (loss_scale or {}).get(step)
        is_gradient = any(map(_GRADIENT.search, [overflow.operator, overflow.type, *overflow.originals]))
        bad = [place for place, taken in enumerate(overflow.inputs) if taken.not_finite or taken.saturated]
        of_input, of_gradients = f"input {min(bad, default=0)} has", "it is in the gradients: the step"
        judged = (  # the first that holds counts
            (bad and not overflow.first, NORMAL, f"{of_input} overflown before: see the first of the step"),
            (bad, NOT_NORMAL, f"{of_input} Inf, NaN or {LARGEST_HALF:g} already: look at what computes it"),
            (not overflow.operator, UNDECIDED, "there is no dump of its operator"),
            (is_in_padding, NOT_NORMAL, _PADDING),
            (not is_gradient, NOT_NORMAL, _FORWARD),
            (is_fixed, NOT_NORMAL, f"the loss scale is fixed at {scale or 0:g}: use a dynamic one, or a smaller one"),
            (scale and scale <= 1, NOT_NORMAL, "the loss scale has fallen to 1, and the gradients still overflow"),
            (
                in_a_row[step] > _MOST_IN_A_ROW,
                NOT_NORMAL,
                f"{in_a_row[step]} steps in a row overflow: the loss scale does not help",
            ),
            (loss_scale is None, UNDECIDED, f"{of_gradients} must be skipped"),
            (True, NORMAL, f"{of_gradients} is skipped, the scale falls"),
        )
        overflow.verdict, overflow.reason = next((verdict, why) for holds, verdict, why in judged if holds)
        overflow.loss_scale = scale


def _consecutive_counts(steps: list[int]) -> dict[int, int]:
    """Return for each step how many in a row overflow around it."""
    rows = itertools.groupby(enumerate(steps), lambda numbered: numbered[1] - numbered[0])
    groups = ([step for _, step in row] for _, row in rows)
    return {step: len(group) for group in groups for step in group}
