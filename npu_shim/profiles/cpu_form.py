"""Profiles of the CPU in the form of the exporter of CANN 8: the same files and columns."""

from __future__ import annotations

import collections
import csv
import os
import time
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from npu_shim._tensorflow.tf_profile import ITERATOR, OpRun

_NONE = "N/A"
_DEVICE = 0
_TYPES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "HALF": "FLOAT16", "BFLOAT16": "DT_BF16"}
_INPUT = (ITERATOR, "OneShotIterator", "QueueDequeue", "ReaderRead")  # begin the types of ops of the input pipeline
_STEP = (
    "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
    "Iteration Refresh(us),Data Aug Bound(us),Model ID"
)
_OP = (
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
    "Task Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats"
)
_STATISTIC = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
_API = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"


class Api(NamedTuple):
    """A row of what the host did: level, name, microseconds and number."""

    level: str
    name: str
    time: float
    number: int


def write(
    folder: str,
    first: int,
    ends: Sequence[float],
    runs: Iterable[OpRun],
    collectives: Iterable[tuple[str, float, float]],
    apis: Iterable[Api],
    lines: Iterable[tuple[str, str, str]],
) -> str:
    """Write a profile into a folder of its own.

    Args:
        folder: gets the folder.
        first: the number of the first step.
        ends: the begin of the first step, and the end of each.
        runs: the runs of ops.
        collectives: key, begin and end of each collective.
        apis: what the host did.
        lines: name, type and line of the ops of the script.
    Returns:
        The folder.
    """
    stamp = time.strftime("%Y%m%d%H%M%S")
    made = os.path.join(folder, f"PROF_000001_{stamp}_CPU", "mindstudio_profiler_output")
    os.makedirs(made)
    begin, end = ends[0], ends[-1]
    rows = [(run, "CPU") for run in runs if begin <= run.begin < end]
    rows += [(OpRun(key, key.partition(" ")[0], start, stop), "COMMUNICATION") for key, start, stop in collectives]
    rows.sort(key=lambda each: each[0].begin)
    tables: dict[str, tuple[str, Iterable[Sequence[Any]]]] = {
        f"step_trace_{stamp}": (_STEP, _steps(first, ends, [run for run, _ in rows])),
        f"op_summary_{stamp}": (_OP, (_op(number, *row) for number, row in enumerate(rows))),
        f"op_statistic_{stamp}": (_STATISTIC, _statistic(rows)),
        f"api_statistic_{stamp}": (_API, [[_DEVICE, *api, api.time / api.number] + [_NONE] * 3 for api in apis]),
        "lines": ("op name,op type,line", lines),
    }
    for name, (head, content) in tables.items():
        with open(os.path.join(made, f"{name}.csv"), "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(head.split(","))
            writer.writerows([f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in content)
    return made


def _steps(first: int, ends: Sequence[float], runs: Sequence[OpRun]) -> Iterator[list[Any]]:
    for number, (begin, end) in enumerate(zip(ends, ends[1:])):
        own = [run for run in runs if begin <= run.begin < end]
        arrived = next((run.end for run in own if run.type.startswith(_INPUT)), begin)
        computing = [run for run in own if not run.type.startswith(_INPUT)]
        start = next((run.begin for run in computing if run.begin >= arrived), None)
        if start is None:
            continue
        update = next((run.begin for run in computing if _updates(run.type)), None)
        passed = max((run.end for run in computing if _is_backward(run, update)), default=None)
        yield [
            _DEVICE,
            first + number,
            start,
            _NONE if passed is None else passed,
            end,
            end - start,
            _NONE if passed is None else passed - start,
            _NONE if passed is None else end - passed,
            start - begin if number else _NONE,
            0,
        ]


def _updates(kind: str) -> bool:
    """Return True for the type of an op with which an optimizer updates a variable."""
    return "Apply" in kind or kind.startswith("AssignSub")


def _is_backward(run: OpRun, update: float | None) -> bool:
    """Return True for an op before the first update, or among the gradients if the updates are not known."""
    return "/gradient" in f"/{run.name}" if update is None else run.begin < update


def _op(number: int, run: OpRun, task: str) -> list[Any]:
    inputs, outputs = _described(run.inputs), _described(run.outputs)
    timed = [run.begin, run.end - run.begin, 0.0]
    return [_DEVICE, 0, number, 0, run.name, run.type, _NONE, task, *timed, *[_NONE] * 3, *inputs, *outputs]


def _described(tensors: list[tuple[str, str]] | None) -> list[str]:
    """Return shapes, types and formats."""
    if tensors is None:
        return [""] * 3
    types = [_TYPES.get(kind.upper(), kind.upper()) for kind, _ in tensors]
    return [";".join(shape for _, shape in tensors), ";".join(types), ";".join("ND" for _ in tensors)]


def _statistic(rows: Iterable[tuple[OpRun, str]]) -> Iterator[list[Any]]:
    times: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for run, task in rows:
        times[run.type, task].append(run.end - run.begin)
    total = sum(map(sum, times.values())) or 1.0
    for (kind, task), each in sorted(times.items(), key=lambda item: -sum(item[1])):
        part = sum(each)
        yield [_DEVICE, kind, task, len(each), part, min(each), part / len(each), max(each), part / total * 100]
