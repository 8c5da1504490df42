"""Profile some training steps of a script: count them, and begin and end between two of them; the vendor's profiler."""

from __future__ import annotations

import atexit
import os
import time

import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._host.messages import report
from npu_shim._tensorflow.types import Result
from npu_shim.rehearsal.progress import progress_hooks
from npu_shim.rehearsal.progress.progress import Progress

LEVEL, METRICS = "L1", "PipeUtilization"  # of the vendor's profiler


class Profiler(Progress):
    """A profiler of some steps of this process; what it does at the steps is up to it.

    Args:
        first, last: the steps to profile, from 0.
    """

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self._first, self._last = first, last
        self._began: int | None = None
        self._ended = False

    def start(self) -> None:
        """Count from now on."""
        progress_hooks.install_progress_hooks(self)
        atexit.register(self._at_exit)

    def is_due(self) -> bool:
        """Return False: no values of the steps are wanted."""
        return False

    def set_step_count(self, source: int, step: int) -> None:
        """Set the number of steps of a source. The profiler begins and ends between two steps."""
        before = self.steps
        super().set_step_count(source, step)
        if self._ended or self.steps <= before:
            return
        if self._began is not None:
            self.note_step_end()
            if self.steps - self._began > self._last - self._first:
                self._at_exit()
        elif self.steps >= self._first:
            self._began = self.steps
            self.begin()

    def _at_exit(self) -> None:
        self._ended = True
        atexit.unregister(self._at_exit)
        if self._began is not None and self.steps > self._began:
            report(f"profiled steps {self._began} to {self.steps - 1}. {self.end()}")
        else:
            report(f"the script ended after {self.steps} steps, before {self._first}. Give earlier --profile-steps.")

    def begin(self) -> None:
        """Begin."""

    def note_step_end(self) -> None:
        """Take note of the end of a step."""

    def end(self) -> str:
        """End. Return what to do now."""
        raise NotImplementedError


class CardProfiler(Profiler):
    """The vendor's profiler for a part of a run.

    It profiles sessions. Eager code and tf.functions of npu_device have none: their whole run is profiled, and the
    profile notes the time of the steps, which are the ones that are read.

    Args:
        first, last: the steps to profile, from 0.
        folder: gets the profile.
    """

    def __init__(self, first: int, last: int, folder: str) -> None:
        super().__init__(first, last)
        self._folder, self._began_ns = folder, 0
        self._profiler: Result = None

    def begin(self) -> None:
        self._began_ns = time.time_ns()
        if not (host_device.has_npu_device() and tf.compat.v1.executing_eagerly_outside_functions()):
            vendors = host_device.import_vendor_module("npu_bridge.profiler.profiler")
            self._profiler = vendors.Profiler(level=LEVEL, aic_metrics=METRICS, output_path=self._folder)
            self._profiler.start()

    def end(self) -> str:
        if self._profiler is not None:
            self._profiler.stop()
            return "They are exported when the script ends"
        with open(os.path.join(self._folder, "profiled_steps.csv"), "w", encoding="utf-8") as stream:
            stream.write(f"begin,end\n{self._began_ns},{time.time_ns()}\n")
        return "npu_device profiles the whole run, and npu-shim profile reads these steps of it"
