"""The options of ``npu-shim run`` and ``launch`` that profile some training steps."""

from __future__ import annotations

import argparse
import atexit
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys

from npu_shim._host import host_device, host_env
from npu_shim._host.messages import report
from npu_shim._tensorflow.types import JsonObject, OptionValue
from npu_shim.cli import _dumped
from npu_shim.cli._paths import unwritable_folder
from npu_shim.import_hook.after_tensorflow import after_tensorflow

_STEPS = 10, 19


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser."""
    group = parser.add_argument_group("profile")
    what = "on an NPU with the vendor's profiler, on the CPU with that of TensorFlow (docs/performance.md)"
    text = f"profile training steps to DIR, for npu-shim profile DIR: {what}"
    group.add_argument("--profile", metavar="DIR", help=text)
    what = f"by default {_STEPS[0]}-{_STEPS[1]} on the CPU, the whole run on an NPU"
    text = f"with --profile: the steps, numbered from 0, as in --profile-steps 20-30; {what}"
    group.add_argument("--profile-steps", type=_dumped.steps, metavar="FIRST-LAST", help=text)


def problem(args: argparse.Namespace) -> str | None:
    """Return why the options cannot be used, None if they can."""
    if args.profile_steps and not args.profile:
        return "--profile-steps needs --profile. Add it."
    if args.profile and getattr(args, "dump", None):
        return "--dump slows the steps that --profile measures. Give one of the two."
    steps = args.profile_steps or [1]
    if not 1 <= steps[0] <= steps[-1] < steps[0] + len(steps):
        return "--profile-steps takes steps one after another from 1 on, like 20-30: step 0 compiles."
    return unwritable_folder("--profile", args.profile, empty=True)


def settings(args: argparse.Namespace) -> JsonObject | None:
    """Return what start() needs, None if no profile is asked for."""
    steps = args.profile_steps and (args.profile_steps[0], args.profile_steps[-1])
    return {"folder": os.path.abspath(args.profile), "steps": steps} if args.profile else None


def start(given: JsonObject | None) -> None:
    """Profile this process, as soon as the script has imported TensorFlow.

    Args:
        given: of settings().
    """
    if given is None:
        return
    folder = _dumped.of_rank(given["folder"])
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):  # an earlier run of the same command has profiled
        return
    is_npu, steps = host_device.look().is_npu, given["steps"]
    first, last = steps or _STEPS
    if is_npu:
        host_env.process_environ().pop("PROFILING_MODE", None)
        atexit.register(_export, folder, given["folder"])  # runs after what the vendor's packages register
        if steps is None:
            report(f"profiles the whole run to {folder}. Train a few steps only")

    def begin() -> None:
        if is_npu:
            from npu_shim.config import given_options
            from npu_shim.profiles.collect import CardProfiler

            whole = whole_run(folder)
            given_options.give({"profiling_mode": False} if steps else whole, of_device=whole)
            if steps:
                CardProfiler(first, last, folder).start()
        else:
            from npu_shim.profiles.cpu_profiler import CpuProfiler

            CpuProfiler(first, last, folder, given["folder"]).start()

    after_tensorflow(begin)


def whole_run(folder: str) -> dict[str, OptionValue]:
    """Return the NPU options that profile all that a session runs."""
    from npu_shim.profiles.collect import METRICS

    wanted = {"training_trace": "on", "task_trace": "on", "aicpu": "on", "hccl": "on", "aic_metrics": METRICS}
    options = {"output": folder, **wanted, "fp_point": "", "bp_point": ""}
    return {"profiling_mode": True, "profiling_options": json.dumps(options)}


def _export(folder: str, job: str) -> None:
    """Let the vendor's tool write the CSV files of a profile, or print its command."""
    found = sorted(glob.glob(os.path.join(folder, "**", "PROF_*"), recursive=True))
    for path in found:
        command = ["msprof", "--export=on", f"--output={path}"]
        if shutil.which(command[0]) is None or subprocess.call(command, stdout=sys.stderr):
            shown = " ".join(map(shlex.quote, command))
            report(f"msprof is not on the PATH, or has failed. On the host with CANN, run: {shown}")
    none = f"the NPU has written no profile to {folder}. Let the script train, and close its session"
    report(f"Read the profile with: npu-shim profile {job}" if found else none)
