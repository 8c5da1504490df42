"""The options of ``npu-shim run`` and ``verify`` for half precision."""

from __future__ import annotations

import argparse
import atexit
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Sequence

from npu_shim._host import host_env
from npu_shim.cli._guard import WrongUsage
from npu_shim.cli._values import add_options, check_needs
from npu_shim.rehearsal.half_run import Precision
from npu_shim.rehearsal.precision_modes import MIXED, REHEARSED

if TYPE_CHECKING:
    from npu_shim.rehearsal.half.half_precision import HalfPrecision

TYPES = ("float16", "bfloat16")
DEFAULT = "--half=float16"
_MOST_OPS = 10  # named at the end of a run
_OPTIONS = f"""
half precision:
--half  compute the ops of the mixed-precision list in 16 bits; float16 without a type (docs/precision.md)
--precision-mode  with --half: the ops that compute in 16 bits; by default {MIXED}
--mixlist FILE  with --half: changes of the lists, as for modify_mixlist
--saturate  with --half: an overflow results in the largest number, not infinity
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a parser."""
    add_options(parser, _OPTIONS, half={"choices": TYPES}, precision_mode={"choices": REHEARSED})


def with_type_of_half(arguments: Sequence[str]) -> list[str]:
    """Return arguments with a type for the first --half that has none, so that it does not take the script for one."""
    words = list(arguments)
    if "--half" in words:
        place = words.index("--half")
        if words[place + 1 : place + 2] not in [[dtype] for dtype in TYPES]:
            words[place] = DEFAULT
    return words


def check(args: argparse.Namespace) -> None:
    """Raise WrongUsage if the options cannot be used."""
    check_needs(args, "half", "precision_mode", "mixlist", "saturate")
    if args.mixlist is not None:
        from npu_shim.rehearsal.assess import operators

        try:
            operators.with_mixlist_changes(operators.built_in_lists(), args.mixlist)
        except ValueError as error:
            raise WrongUsage(str(error))


def settings(args: argparse.Namespace) -> Precision | None:
    """Return the precision, None without --half."""
    if not args.half:
        return None
    mixlist = None if args.mixlist is None else os.path.abspath(args.mixlist)
    return Precision(args.half, args.precision_mode or MIXED, mixlist, args.saturate)


def _log_saturated(rehearsal: HalfPrecision) -> None:
    """Name the ops whose values were larger than the largest number of 16 bits, the most frequent first."""
    from npu_shim._tensorflow import tf_api

    counts = sorted(rehearsal.saturated.items(), key=lambda counted: -counted[1])
    names = [f"{op} ({times} {'time' if times == 1 else 'times'})" for op, times in counts[:_MOST_OPS]]
    more = f" and {len(counts) - _MOST_OPS} more" if len(counts) > _MOST_OPS else ""
    tf_api.logging.warning("npu_shim: saturated in 16 bits: %s", (", ".join(names) or "none") + more)


def rehearse_half_after_import(precision: Precision) -> None:
    """Rehearse half precision as soon as the script has imported TensorFlow."""
    from npu_shim.import_hook.after_tensorflow import after_tensorflow

    host_env.process_environ().setdefault("NPU_SHIM_KERNELS", "plain")  # compiled kernels have no ops to round

    def begin() -> None:
        from npu_shim.rehearsal.half.half_precision import half_precision

        rehearsal = half_precision(**asdict(precision))
        if precision.saturate:
            atexit.register(_log_saturated, rehearsal)

    after_tensorflow(begin)
