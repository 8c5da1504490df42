"""Overflows that the device reported: the first operator of each step, and whether a loss scale explains it.

A dynamic loss scale grows until a gradient overflows; the step is skipped and the scale falls. So single overflows in
the gradients are normal. These are not: an overflow in the forward pass, which no loss scale reaches; more steps in a
row than the scale needs to fall; a scale at 1; any overflow with a fixed scale, which trains on with it.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING, Iterator

import numpy as np

import npu_shim
from npu_shim.dumps import dump, files, graph_files, op_debug
from npu_shim.dumps.dump import DumpData, Tensor
from npu_shim.dumps.formats import DumpError
from npu_shim.dumps.graph_files import GraphOp
from npu_shim.dumps.limits import LARGEST_HALF
from npu_shim.dumps.reference import flat

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

NORMAL, NOT_NORMAL, UNDECIDED = "normal", "not normal", "normal with a dynamic loss scale only"
_GRADIENT = re.compile(r"(^|/|_)(gradients?(_\d+)?|gradient_tape|grad)(/|_|$)|Backprop|Grad$", re.I)
_OP_DEBUG = "Opdebug"
_MOST_IN_A_ROW = 10  # steps: from 2**15, the scale that most scripts start with, down to 2**5


def run(folder: str, graphs: list[str], loss_scale: dict[int, float] | float | None) -> JsonObject:
    """Return what docs/overflow.schema.json describes.

    Args:
        folder: of the dumps.
        graphs: further folders with graph files.
        loss_scale: by step, or a fixed one; None if unknown.
    """
    found, problems = files.find(folder)
    graph = graph_files.find([folder, *graphs], problems)
    by_name = {flat(op.name): op for op in graph.ops.values()}
    reports = []
    for file in _reports(folder, found):
        try:
            reports += op_debug.read(file)
        except (ValueError, OSError, RecursionError) as error:
            problems[file.path] = str(error)
    reports.sort(key=lambda each: (each.file.step, each.file.time))
    entries = [_entry(report, found, by_name, problems) for report in reports]
    _judge(entries, loss_scale)
    verdict = NOT_NORMAL if any(each["verdict"] == NOT_NORMAL for each in entries) else NORMAL
    return {
        "schema_version": 1,
        "tool": "npu-shim dumps overflow",
        "tool_version": npu_shim.__version__,
        "folder": folder,
        "loss_scale": "fixed" if isinstance(loss_scale, float) else "dynamic" if loss_scale else "unknown",
        "verdict": verdict if entries else "none",
        "overflows": entries,
        "problems": [{"file": path, "problem": text} for path, text in problems.items()],
    }


def read_loss_scale(text: str) -> dict[int, float] | float:
    """Return the loss scales that an argument gives: a number, or a file with a step and a scale on each line.

    Raises:
        ValueError: it is neither.
    """
    if not os.path.exists(text):
        try:
            return float(text)
        except ValueError as error:
            raise ValueError(f"can't find {text!r}. Give a number, or a file with STEP,SCALE on each line") from error
    found = {}
    with open(text, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            parts = line.replace(",", " ").split()
            try:
                found.update({int(parts[0]): float(parts[1])} if parts else {})
            except (ValueError, IndexError) as error:
                raise ValueError(f"{text}:{number}: {line.strip()[:80]!r} is not STEP,SCALE") from error
    return found


def _reports(folder: str, found: list[files.DumpFile]) -> Iterator[files.DumpFile]:
    """Return the op debug files; JSON counts where the dump that it was made of is not there."""
    dumps = [file for file in found if file.op_type == _OP_DEBUG]
    yield from dumps
    names = {os.path.basename(file.path) for file in dumps}
    for path in files.below(folder, (".json",)):
        name, output, _ = os.path.basename(path).partition(".output.")
        made = files.named(path, name, os.path.relpath(path, folder))
        if made and output and made.op_type == _OP_DEBUG and name not in names:
            yield made


def _entry(
    report: op_debug.Report, found: list[files.DumpFile], by_name: dict[str, GraphOp], problems: dict[str, str]
) -> JsonObject:
    place = os.path.dirname(report.file.path)
    beside = (file for file in found if file.op_type != _OP_DEBUG and os.path.dirname(file.path) == place)
    file = min(filter(report.is_of, beside), key=lambda each: each.time, default=None)
    data = next((data for _, data in dump.read_all([file] if file else [], problems)), DumpData())
    name = data.op_name or (file.op_name if file else "")
    op = by_name.get(flat(name))
    return {
        "step": report.file.step,
        "time": report.file.time,
        "unit": report.unit,
        "status": report.status,
        "task": report.task,
        "stream": report.stream,
        "operator": op.name if op else name,
        "type": op.op_type if op else file.op_type if file else "",
        "originals": (op.originals if op else data.originals) or [],
        "inputs": [_range(file.path, each) for each in data.inputs if file],
        "outputs": [_range(file.path, each) for each in data.outputs if file],
        "file": report.file.path,
        "dump": file.path if file else None,
    }


def _range(path: str, tensor: Tensor) -> JsonObject:
    made: JsonObject = {"type": dump.type_name(tensor), "shape": list(tensor.original_shape)}
    made.update(low=None, high=None, not_finite=0, saturated=0, problem="")
    try:
        array = dump.values(path, tensor)
    except DumpError as error:
        return {**made, "problem": str(error)}
    if array.dtype.kind == "c":
        array = np.abs(array)
    finite = array[np.isfinite(array)]
    if finite.size:
        made.update(low=float(finite.min()), high=float(finite.max()))
    saturated = int((np.abs(finite) == LARGEST_HALF).sum()) if made["type"] == "float16" else 0
    made.update(not_finite=int(array.size - finite.size), saturated=saturated)
    return made


def _judge(entries: list[JsonObject], loss_scale: dict[int, float] | float | None) -> None:
    """Add verdict, reason and loss scale to each overflow."""
    rows = _in_a_row(sorted({each["step"] for each in entries}))
    for number, each in enumerate(entries):
        each["first"] = not number or entries[number - 1]["step"] != each["step"]  # they are sorted
        scale = loss_scale if isinstance(loss_scale, float) else (loss_scale or {}).get(each["step"])
        names = [each["operator"], each["type"], *each["originals"]]
        is_gradient = any(_GRADIENT.search(name) for name in names)
        bad = [n for n, taken in enumerate(each["inputs"]) if taken["not_finite"] or taken["saturated"]]
        each["loss_scale"], each["verdict"] = scale, NOT_NORMAL
        if bad and not each["first"]:
            each["verdict"], each["reason"] = NORMAL, f"input {bad[0]} has overflown before: see the first of the step"
        elif bad:
            each["reason"] = f"input {bad[0]} has Inf, NaN or {LARGEST_HALF:g} already: look at what computes it"
        elif not each["operator"]:
            each["verdict"], each["reason"] = UNDECIDED, "there is no dump of its operator"
        elif not is_gradient:
            each["reason"] = "it is in the forward pass, which no loss scale reaches: keep the operator in float32"
        elif isinstance(loss_scale, float):
            each["reason"] = f"the loss scale is fixed at {loss_scale:g}: use a dynamic one, or a smaller one"
        elif scale is not None and scale <= 1:
            each["reason"] = "the loss scale has fallen to 1, and the gradients still overflow"
        elif rows[each["step"]] > _MOST_IN_A_ROW:
            each["reason"] = f"{rows[each['step']]} steps in a row overflow: the loss scale does not help"
        elif loss_scale is None:
            each["verdict"], each["reason"] = UNDECIDED, "it is in the gradients: the step must be skipped"
        else:
            each["verdict"], each["reason"] = NORMAL, "it is in the gradients: the step is skipped, the scale falls"


def _in_a_row(steps: list[int]) -> dict[int, int]:
    """Return for each step how many in a row overflow around it."""
    rows = itertools.groupby(enumerate(steps), lambda each: each[1] - each[0])
    groups = ([step for _, step in row] for _, row in rows)
    return {step: len(group) for group in groups for step in group}
