"""Profile some training steps of a script: on a card with the vendor's profiler, else with that of TensorFlow."""

from __future__ import annotations

import atexit
import os
import time
from typing import Any

import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._host.messages import report
from npu_shim.profiles.cpu_trace import ProcessProfiler, SessionProfiler
from npu_shim.profiles.profiler import Profiler
from npu_shim.rehearsal.progress import hooks
from npu_shim.rehearsal.progress.progress import Progress

LEVEL, METRICS = "L1", "PipeUtilization"  # of the vendor's profiler


class Steps(Progress):
    """Count the steps of this process, and start and stop a profiler.

    Args:
        first, last: the steps to profile, from 0.
        profiler: the profiler.
    """

    def __init__(self, first: int, last: int, profiler: Profiler) -> None:
        super().__init__()
        self._first, self._last, self._profiler = first, last, profiler
        self._began: int | None = None
        self._ended = False

    def start(self) -> None:
        """Count from now on."""
        self._profiler.watch()
        hooks.watch_all(self)
        atexit.register(self._at_exit)

    def is_due(self) -> bool:
        """Return False: no values of the steps are wanted."""
        return False

    def reach(self, source: int, step: int) -> None:
        """Set the number of steps of a source. The profiler starts and stops between two steps."""
        before = self.steps
        super().reach(source, step)
        if self._ended or self.steps <= before:
            return
        if self._began is not None:
            self._profiler.ends_step()
            if self.steps > self._last and self.steps - self._began > self._last - self._first:
                self._end()
        elif self.steps >= self._first:
            self._began = self.steps
            self._profiler.begin(self.steps)
        elif self.steps == self._first - 1:
            self._profiler.prepare()

    def _end(self) -> None:
        self._ended = True
        report(f"profiled steps {self._began} to {self.steps - 1}. {self._profiler.end()}")

    def _at_exit(self) -> None:
        if self._began is not None and not self._ended and self.steps > self._began:
            self._end()
        elif not self._ended:
            report(
                f"the script ended after {self.steps} training steps, and step {self._first} is the first to profile. "
                "Give earlier ones with --profile-steps."
            )


class CardProfiler(Profiler):
    """The vendor's profiler for a part of a run.

    It profiles sessions. Eager code and tf.functions of npu_device have none: their whole run is profiled, and the
    profile notes the time of the steps, which are the ones that are read.

    Args:
        folder: gets the profile.
    Raises:
        RuntimeError: the vendor's package has no profiler.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._began_ns = folder, 0
        self._profiler = None if host_device.has_npu_device() else self._of_sessions()

    def _of_sessions(self) -> Any:
        found = host_device.find_vendor("npu_bridge.profiler.profiler")
        if found is None:
            raise RuntimeError("--profile-steps needs the vendor's profiler. Leave it out to profile the whole run.")
        return found.Profiler(level=LEVEL, aic_metrics=METRICS, output_path=self._folder)

    def begin(self, step: int) -> None:
        self._began_ns = time.time_ns()
        if host_device.has_npu_device() and not tf.compat.v1.executing_eagerly_outside_functions():
            self._profiler = self._of_sessions()
        if self._profiler is not None:
            self._profiler.start()

    def end(self) -> str:
        if self._profiler is not None:
            self._profiler.stop()
            return "They are exported when the script ends"
        with open(os.path.join(self._folder, "profiled_steps.csv"), "w", encoding="utf-8") as stream:
            stream.write(f"begin,end\n{self._began_ns},{time.time_ns()}\n")
        return "npu_device profiles the whole run, and npu-shim profile reads these steps of it"


def profiler(folder: str, job: str) -> Profiler:
    """Return the profiler of this host, which writes to a folder in that of a job."""
    if host_device.is_npu():
        return CardProfiler(folder)
    return (SessionProfiler if tf.__version__.startswith("1.") else ProcessProfiler)(folder, job)
