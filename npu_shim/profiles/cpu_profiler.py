"""Profile steps on the CPU, by TensorFlow's profilers, and write them in the form of the exporter of CANN 8.

Its files have those of its columns that say something.
"""

from __future__ import annotations

import csv
import gc
import os
import re
import time
import weakref
from typing import Iterable, Iterator, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.tf_profile import ITERATOR, HostTrace, OpRun
from npu_shim._tensorflow.types import Function, Graph, Operation, Result, Value
from npu_shim.distributed.collectives.process_group import ProcessGroup
from npu_shim.distributed.collectives.transport import GroupBackend
from npu_shim.profiles.cpu_trace import HostSamples, SessionTrace
from npu_shim.profiles.step_profiler import Profiler
from npu_shim.rehearsal.assess.lines import creating_lines, running_script_line
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.functions import disable_xla

_STEP = "step"  # the name of the span that ends one
_INPUT = (ITERATOR, "OneShotIterator", "QueueDequeue", "ReaderRead")  # begin the types of ops of the input pipeline
_HEADS = {
    "step_trace": "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us)",
    "op_summary": "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Input Shapes,"
    "Input Data Types",
    "api_statistic": "Level,API Name,Time(us),Count",
    "lines": "op name,op type,line",
}


class CpuProfiler(Profiler, tf_op_creation.OpHook):
    """TensorFlow's profiler, and samples of the lines of the script.

    Args:
        first, last: the steps to profile, from 0.
        folder: gets the profile.
        job: the folder of all ranks.
    """

    def __init__(self, first: int, last: int, folder: str, job: str) -> None:
        super().__init__(first, last)
        self._folder, self._job, self._script = folder, job, os.getcwd()
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self._eager: dict[str, str] = {}  # type of an op -> line

    def start(self) -> None:
        """Count from now on."""
        disable_xla()
        tf_op_creation.add_hook(self)
        self._trace = SessionTrace() if tf.__version__.startswith("1.") else HostTrace()
        methods.wrap_methods(GroupBackend, ("run",), self._trace_collective)
        super().start()

    def replace_outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Take note of the graph of an op, or of the line that runs it."""
        if op is not None:
            self._graphs.add(op.graph)
        elif self.steps == self._first - 1 and op_type not in self._eager:  # the step before the profile
            self._eager[op_type] = running_script_line(self._script)
        return list(outputs)

    def _trace_collective(self, original: Function, group: ProcessGroup, key: str, *args: object) -> Result:
        with self._trace.span(key):
            return original(group, key, *args)

    def begin(self) -> None:
        gc.collect()  # takes half a second after the imports, which would be in one of the few steps
        self._trace.start()
        self.note_step_end()
        self._samples = HostSamples(self._script)

    def note_step_end(self) -> None:
        with self._trace.span(_STEP):
            pass

    def end(self) -> str:
        samples = self._samples.end()
        tf_op_creation.remove_hook(self)
        runs, spans, tracings = self._trace.stop()
        ends = [begin for name, begin, _ in spans if name == _STEP]
        for name, begin, end in (span for span in spans if span[0] != _STEP):
            runs.append(OpRun(name, name.split()[0], begin, end, task="COMMUNICATION"))
        apis = [*(("host", f"retrace {name}", end - begin, 1) for name, begin, end in tracings), *samples]
        self._write_profile(ends, runs, apis, self._lines_of_runs(runs))
        return f"Read them with: npu-shim profile {self._job}"

    def _lines_of_runs(self, runs: Iterable[OpRun]) -> Iterator[tuple[str, str, str]]:
        """Yield name, type and line of the ops that ran. An inlined function puts parts before their names."""
        ops = {op.name: op for graph in self._graphs for op in graph.get_operations()}
        for name in sorted({run.name for run in runs}):
            ends = (name.split("/", number)[-1] for number in range(name.count("/") + 1))
            op = next((ops[end] for end in ends if end in ops), None)
            lines = [self._eager.get(name, "")] if op is None else [*creating_lines(op, self._script), ""]
            if lines[0]:
                yield name, name if op is None else op.type, lines[0]

    def _write_profile(self, ends: Sequence[float], runs: Iterable[OpRun], *tables: Iterable[Sequence[Value]]) -> None:
        """Write the profile into a folder of its own.

        Args:
            ends: the begin of the first step, and the end of each, in microseconds.
            runs: the runs of ops.
            tables: rows of what the host did, and of the lines of ops.
        """
        stamp = time.strftime("%Y%m%d%H%M%S")
        place = os.path.join(self._folder, f"PROF_000001_{stamp}_CPU", "mindstudio_profiler_output")
        os.makedirs(place)
        own = sorted((run for run in runs if ends[0] <= run.begin < ends[-1]), key=lambda run: run.begin)
        ops = ((0, *run[:2], run.task, run.begin, run.end - run.begin, run.shapes, run.types) for run in own)
        for (name, heads), rows in zip(_HEADS.items(), (_step_rows(self._began or 0, ends, own), ops, *tables)):
            with open(os.path.join(place, f"{name}_{stamp}.csv"), "w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream)
                writer.writerow(heads.split(","))
                writer.writerows([f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in rows)


def _step_rows(first: int, ends: Sequence[float], runs: Sequence[OpRun]) -> Iterator[list[Value]]:
    """Yield the rows of steps: the forward pass begins with the data, and the backward pass ends at updates."""
    for number, (begin, end) in enumerate(zip(ends, ends[1:]), first):
        own = [run for run in runs if begin <= run.begin < end]
        arrived = next((run.end for run in own if run.type.startswith(_INPUT)), begin)
        computing = [run for run in own if run.begin >= arrived and not run.type.startswith(_INPUT)]
        update = next((run.begin for run in computing if re.match(".*Apply|AssignSub", run.type)), end)
        passed = [run.end for run in computing if run.begin < update]
        if passed:
            yield [0, number, computing[0].begin, max(passed), end, end - begin]
