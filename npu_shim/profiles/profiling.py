"""Profile some training steps of this process: settings, start, and the export of what the vendor's profiler wrote."""

from __future__ import annotations

import atexit
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

from npu_shim._host import host_device, host_env
from npu_shim._host.messages import report
from npu_shim._tensorflow.types import OptionValue
from npu_shim.distributed.world import world
from npu_shim.import_hook.after_tensorflow import after_tensorflow

STEPS = 10, 19  # by default, on the CPU


@dataclass(frozen=True)
class Profiling:
    """The settings of ``--profile``.

    Attributes:
        folder: of the job.
        steps: the first and the last one, from 0; None for STEPS on the CPU, the whole run on an NPU.
    """

    folder: str
    steps: tuple[int, int] | None = None

    def start(self) -> None:
        """Profile this process, as soon as the script has imported TensorFlow."""
        folder = world().rank_folder(self.folder)
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder):  # an earlier run of the same command has profiled
            return
        is_npu = host_device.detect_without_import().is_npu
        first, last = self.steps or STEPS
        if is_npu:
            host_env.process_environ().pop("PROFILING_MODE", None)
            atexit.register(_export_profile, folder, self.folder)  # runs after what the vendor's packages register
            if self.steps is None:
                report(f"profiles the whole run to {folder}. Train a few steps only")

        def begin() -> None:
            if is_npu:
                from npu_shim.config import given_options
                from npu_shim.profiles.step_profiler import CardProfiler

                whole = options_for_whole_run(folder)
                given_options.apply_to_new_sessions({"profiling_mode": False} if self.steps else whole, of_device=whole)
                if self.steps:
                    CardProfiler(first, last, folder).start()
            else:
                from npu_shim.profiles.cpu_profiler import CpuProfiler

                CpuProfiler(first, last, folder, self.folder).start()

        after_tensorflow(begin)


def options_for_whole_run(folder: str) -> dict[str, OptionValue]:
    """Return the NPU options that profile all that a session runs."""
    from npu_shim.profiles.step_profiler import METRICS

    wanted = {"training_trace": "on", "task_trace": "on", "aicpu": "on", "hccl": "on", "aic_metrics": METRICS}
    options = {"output": folder, **wanted, "fp_point": "", "bp_point": ""}
    return {"profiling_mode": True, "profiling_options": json.dumps(options)}


def _export_profile(folder: str, job: str) -> None:
    """Let the vendor's tool write the CSV files of a profile, or print its command."""
    written = sorted(glob.glob(os.path.join(folder, "**", "PROF_*"), recursive=True))
    for path in written:
        command = ["msprof", "--export=on", f"--output={path}"]
        if shutil.which(command[0]) is None or subprocess.call(command, stdout=sys.stderr):
            shown = " ".join(map(shlex.quote, command))
            report(f"msprof is not on the PATH, or has failed. On the host with CANN, run: {shown}")
    none = f"the NPU has written no profile to {folder}. Let the script train, and close its session"
    report(f"Read the profile with: npu-shim profile {job}" if written else none)
