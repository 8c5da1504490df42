"""The options of ``npu-shim run`` and ``verify`` that dump what each op computes, and change how a card computes it."""

from __future__ import annotations

import argparse
import os

from npu_shim._host import host_device
from npu_shim.cli._guard import WrongUsage
from npu_shim.cli._paths import check_output_folder
from npu_shim.cli._values import add_options, check_needs
from npu_shim.dumps.dump_settings import Dumping

_OPTIONS = """
dumps and precision on an NPU:
--dump DIR  write what each op computes to DIR and end the script after the last dumped step; on an NPU the engine's
    dumps and graphs, on the CPU a file for each output (docs/accuracy.md)
--dump-steps STEPS  with --dump: the training steps, from 0, as in --dump-steps 0,5,10-12; by default 0
--dump-overflow  with --dump: on an NPU, dump only where numbers overflow, at every step
--dump-layers NAMES  with --dump: these ops only, as in --dump-layers dense/MatMul,loss; by default all
--fusion  switch the fusion of ops off on an NPU
--precision MODE  the option precision_mode for all sessions of the script on an NPU
"""
_MOST_STEPS = 100  # that the NPU takes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser."""
    add_options(
        parser,
        _OPTIONS,
        dump_steps={"type": parse_steps},
        dump_layers={"type": lambda text: text.replace(",", " ").split()},
        fusion={"choices": ("off",)},
    )


def check(args: argparse.Namespace) -> None:
    """Raise WrongUsage if the options cannot be used."""
    check_needs(args, "dump", "dump_steps", "dump_overflow", "dump_layers")
    if args.dump_overflow and args.dump_steps:
        raise WrongUsage("--dump-overflow looks at every step, so it excludes --dump-steps. Give one of the two.")
    if args.dump_overflow and not host_device.detect_without_import().is_npu:
        instead = "On the CPU, npu-shim run --numerics DIR names the op that overflows."
        raise WrongUsage(f"--dump-overflow needs an NPU. {instead}")
    check_output_folder("--dump", args.dump, must_be_empty=True)
    if args.precision:
        from npu_shim.options.check import checked_session_options

        try:
            checked_session_options({"precision_mode": args.precision})
        except ValueError as error:
            raise WrongUsage(str(error))


def dump_settings(args: argparse.Namespace, deterministic: bool) -> Dumping | None:
    """Return the settings, None if nothing of it is asked for."""
    if not (args.dump or args.fusion or args.precision or deterministic):
        return None
    return Dumping(
        folder=args.dump and os.path.abspath(args.dump),
        steps=[] if args.dump_overflow or not args.dump else args.dump_steps or [0],
        layers=args.dump_layers or [],
        overflow=args.dump_overflow,
        fusion=args.fusion,
        precision=args.precision,
        deterministic=deterministic,
    )


def parse_steps(text: str) -> list[int]:
    """Return the numbers of steps in an argument, such as 0,5,10-12."""
    chosen: set[int] = set()
    for part in text.replace("|", ",").split(","):
        first, _, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last or first) + 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text} is not allowed: give steps from 0, like 5 or 10-12") from None
        chosen.update(numbers[: _MOST_STEPS + 1])  # one more is too many
    if not chosen or len(chosen) > _MOST_STEPS:
        raise argparse.ArgumentTypeError(f"{text} is not allowed: give 1 to {_MOST_STEPS} steps, like 5 or 10-12")
    return sorted(chosen)
