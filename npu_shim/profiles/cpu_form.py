"""Profiles of the CPU in the form of the exporter of CANN 8: its files, and those of its columns that say something."""

from __future__ import annotations

import csv
import os
import time
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

from npu_shim._tensorflow.tf_profile import ITERATOR, OpRun

_TYPES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "HALF": "FLOAT16", "BFLOAT16": "DT_BF16"}
_INPUT = (ITERATOR, "OneShotIterator", "QueueDequeue", "ReaderRead")  # begin the types of ops of the input pipeline
_HEADS = {
    "step_trace": "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),"
    "Data Aug Bound(us)",
    "op_summary": "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Input Shapes,"
    "Input Data Types,Output Shapes,Output Data Types",
    "api_statistic": "Level,API Name,Time(us),Count",
    "lines": "op name,op type,line",
}


class Api(NamedTuple):
    """A row of what the host did: level, name, microseconds and number."""

    level: str
    name: str
    time: float
    number: int


def write(
    folder: str,
    first: int,
    recorded: Iterable[OpRun],
    ends: Sequence[float],
    apis: Sequence[Api],
    lines: Iterable[tuple[str, str, str]],
) -> None:
    """Write a profile into a folder of its own.

    Args:
        folder: gets the folder.
        first: the number of the first step.
        recorded: the runs of ops.
        ends: the begin of the first step, and the end of each, in microseconds.
        apis: what the host did.
        lines: name, type and line of the ops of the script.
    """
    stamp = time.strftime("%Y%m%d%H%M%S")
    made = os.path.join(folder, f"PROF_000001_{stamp}_CPU", "mindstudio_profiler_output")
    os.makedirs(made)
    runs = [run for run in recorded if ends[0] <= run.begin < ends[-1] or run.task != "CPU"]
    runs.sort(key=lambda each: each.begin)
    tables: dict[str, Iterable[Sequence[Any]]] = {
        "step_trace": _steps(first, ends, runs),
        "op_summary": map(_op, runs),
        "api_statistic": apis,
        "lines": lines,
    }
    for name, content in tables.items():
        path = os.path.join(made, f"{name}.csv" if name == "lines" else f"{name}_{stamp}.csv")
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(_HEADS[name].split(","))
            writer.writerows([f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in content)


def _steps(first: int, ends: Sequence[float], runs: Sequence[OpRun]) -> Iterator[list[Any]]:
    for number, (begin, end) in enumerate(zip(ends, ends[1:])):
        own = [run for run in runs if begin <= run.begin < end]
        arrived = next((run.end for run in own if run.type.startswith(_INPUT)), begin)
        computing = [run for run in own if not run.type.startswith(_INPUT)]
        start = next((run.begin for run in computing if run.begin >= arrived), None)
        if start is not None:
            updates = (run.begin for run in computing if "Apply" in run.type or run.type.startswith("AssignSub"))
            update = next(updates, None)  # without one, the names of gradients say where the backward pass ends
            backward = [
                run.end for run in computing if (run.begin < update if update else "/gradient" in f"/{run.name}")
            ]
            passed = max(backward, default=None)
            yield [0, first + number, start, passed, end, end - begin, start - begin if number else None]


def _op(run: OpRun) -> list[Any]:
    described = []
    for tensors in (run.inputs or (), run.outputs or ()):
        types = [_TYPES.get(kind.upper(), kind.upper()) for kind, _ in tensors]
        described += [";".join(shape for _, shape in tensors), ";".join(types)]
    return [0, run.name, run.type, run.task, run.begin, run.end - run.begin, *described]
