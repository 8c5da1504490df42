"""The profiler of this host: the vendor's on a card, else that of TensorFlow."""

from __future__ import annotations

import os
import time
from typing import Any

import tensorflow as tf

from npu_shim._host import host_device
from npu_shim.profiles.cpu_trace import CpuProfiler
from npu_shim.profiles.profiler import Profiler

LEVEL, METRICS = "L1", "PipeUtilization"  # of the vendor's profiler


class CardProfiler(Profiler):
    """The vendor's profiler for a part of a run.

    It profiles sessions. Eager code and tf.functions of npu_device have none: their whole run is profiled, and the
    profile notes the time of the steps, which are the ones that are read.

    Args:
        first, last: the steps to profile, from 0.
        folder: gets the profile.
    Raises:
        RuntimeError: the vendor's package has no profiler.
    """

    def __init__(self, first: int, last: int, folder: str) -> None:
        super().__init__(first, last)
        self._folder, self._began_ns = folder, 0
        self._profiler = None if host_device.has_npu_device() else self._of_sessions()

    def _of_sessions(self) -> Any:
        found = host_device.find_vendor("npu_bridge.profiler.profiler")
        if found is None:
            raise RuntimeError("--profile-steps needs the vendor's profiler. Leave it out to profile the whole run.")
        return found.Profiler(level=LEVEL, aic_metrics=METRICS, output_path=self._folder)

    def begin(self) -> None:
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


def profiler(steps: tuple[int, int], folder: str, job: str) -> Profiler:
    """Return the profiler of this host, which writes to a folder in that of a job."""
    return CardProfiler(*steps, folder) if host_device.is_npu() else CpuProfiler(*steps, folder, job)
