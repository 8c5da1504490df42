"""Profiles of the CPU in the form of the exporter of CANN 8: its files, and those of its columns that say something."""

from __future__ import annotations

import csv
import os
import re
import time
from typing import Any, Iterable, Iterator, Sequence

from npu_shim._tensorflow.tf_profile import ITERATOR, OpRun

_INPUT = (ITERATOR, "OneShotIterator", "QueueDequeue", "ReaderRead")  # begin the types of ops of the input pipeline
_HEADS = {
    "step_trace": "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us)",
    "op_summary": "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Input Shapes,"
    "Input Data Types",
    "api_statistic": "Level,API Name,Time(us),Count",
    "lines": "op name,op type,line",
}


def write(
    folder: str, first: int, ends: Sequence[float], runs: Iterable[OpRun], *tables: Iterable[Sequence[Any]]
) -> None:
    """Write a profile into a folder of its own.

    Args:
        folder: gets the folder.
        first: the number of the first step.
        ends: the begin of the first step, and the end of each, in microseconds.
        runs: the runs of ops.
        tables: rows of what the host did, and of the lines of ops.
    """
    stamp = time.strftime("%Y%m%d%H%M%S")
    made = os.path.join(folder, f"PROF_000001_{stamp}_CPU", "mindstudio_profiler_output")
    os.makedirs(made)
    own = sorted((run for run in runs if ends[0] <= run.begin < ends[-1]), key=lambda each: each.begin)
    ops = ((0, *run[:4], run.end - run.begin, *run[5:]) for run in own)
    for (name, heads), rows in zip(_HEADS.items(), (_steps(first, ends, own), ops, *tables)):
        with open(os.path.join(made, f"{name}_{stamp}.csv"), "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(heads.split(","))
            writer.writerows([f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows)


def _steps(first: int, ends: Sequence[float], runs: Sequence[OpRun]) -> Iterator[list[Any]]:
    for number, (begin, end) in enumerate(zip(ends, ends[1:]), first):
        own = [run for run in runs if begin <= run.begin < end]
        arrived = next((run.end for run in own if run.type.startswith(_INPUT)), begin)
        computing = [run for run in own if not run.type.startswith(_INPUT)]
        start = next((run.begin for run in computing if run.begin >= arrived), None)
        if start is not None:
            update = next((run.begin for run in computing if re.match(".*Apply|AssignSub", run.type)), end)
            passed = max((run.end for run in computing if run.begin < update), default=None)
            yield [0, number, start, passed, end, end - begin]
