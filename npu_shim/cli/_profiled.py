"""The options of ``npu-shim run`` and ``launch`` that profile some training steps."""

from __future__ import annotations

import argparse
import os

from npu_shim.cli import _dumped
from npu_shim.cli._guard import WrongUsage
from npu_shim.cli._paths import check_output_folder
from npu_shim.cli._values import add_options, check_needs
from npu_shim.profiles.profiling import STEPS, Profiling

_OPTIONS = f"""
profile:
--profile DIR  profile training steps to DIR, for npu-shim profile DIR: on an NPU with the vendor's profiler, on the CPU
    with that of TensorFlow (docs/performance.md)
--profile-steps FIRST-LAST  with --profile: the steps, numbered from 0, as in --profile-steps 20-30; by default
    {STEPS[0]}-{STEPS[1]} on the CPU, the whole run on an NPU
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser."""
    add_options(parser, _OPTIONS, profile_steps={"type": _dumped.parse_steps})


def check(args: argparse.Namespace) -> None:
    """Raise WrongUsage if the options cannot be used."""
    check_needs(args, "profile", "profile_steps")
    if args.profile and getattr(args, "dump", None):
        raise WrongUsage("--dump slows the steps that --profile measures. Give one of the two.")
    steps = args.profile_steps or [1]
    if not 1 <= steps[0] <= steps[-1] < steps[0] + len(steps):
        raise WrongUsage("--profile-steps takes steps one after another from 1 on, like 20-30: step 0 compiles.")
    check_output_folder("--profile", args.profile, must_be_empty=True)


def profile_settings(args: argparse.Namespace) -> Profiling | None:
    """Return the settings, None if no profile is asked for."""
    steps = args.profile_steps and (args.profile_steps[0], args.profile_steps[-1])
    return Profiling(os.path.abspath(args.profile), steps) if args.profile else None
