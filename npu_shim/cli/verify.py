"""Run a script and its migrated form with the same data and seeds, and compare what they compute.

Both run in processes of their own on this machine. Without a migrated script, the original is converted in memory.
The command names the first step that departs and the first tensor that departs there.
"""

from __future__ import annotations

import argparse
import os
import shutil
from typing import TYPE_CHECKING

from npu_shim.cli import MIGRATE, _dumped, _half, parser_of, print_output
from npu_shim.cli._copies import print_copies
from npu_shim.cli._guard import WrongUsage, need_tensorflow
from npu_shim.cli._lines import QUIET, line_printer, print_error
from npu_shim.cli._paths import check_file, check_output_folder, check_project
from npu_shim.cli._values import MOST_RANKS, add_options, check_needs, integer_parser, parse_positive, split_at_dashes
from npu_shim.import_hook import tool
from npu_shim.rehearsal.comparing import ELSEWHERE, TOLERANCE

if TYPE_CHECKING:
    from npu_shim.rehearsal.planning import Plan

GROUP = MIGRATE
EXAMPLE = "npu-shim verify train.py -- --batch_size 64"

_COMMAND = "npu-shim verify"
_OF_RECORDING = "seed every steps predict seeds strict original_arguments migrated_arguments half perturbed"
_OPTIONS = f"""
-r --report DIR  write verify.txt, .json, .xml (JUnit) and .html to DIR
--tolerance X  relative difference allowed for float32 at the first step; by default {TOLERANCE:g}, and {ELSEWHERE:g}
    against a recording of another version or device (docs/verify.md)
--every N  after step 10, record gradients and variables at every N-th step only
--steps N  end both scripts after N training steps like an early stop: finally blocks, hooks and checkpoints run
--predict  compare predictions and metrics only: both scripts end where they would begin to train
--ranks N  run the migrated script on N ranks, the original on one process
--original-arguments TEXT  arguments of the original only, after the common ones, as in
    --original-arguments='--batch_size=128'
--migrated-arguments TEXT  arguments of the migrated script only, after the common ones
--perturbed N  with --half or --record: the number of perturbed float32 runs from which the band follows; by default 4
--strict  compare with the untouched original, also where the migration changes numbers on purpose
--project FOLDER  without MIGRATED, convert the files of this folder that the script imports; else those of its own
    folder
--copy  run each script in its own copy of the current folder, or of the project
--timeout SECONDS  end a script that takes longer
{QUIET}

recordings:
--record DIR  also write a recording of the original to DIR, to compare with on another machine
| --against DIR  run MIGRATED only, and compare it with this recording
--tensors STEPS  with --record: the steps whose tensors are recorded as they are, as in --tensors 1,10
--most GB  with --record: the gigabytes that the recording may take; by default 1
--initial-variables  with --against: begin with the variables of the recording. Other versions and devices draw others

random numbers:
--deterministic  give random ops without a seed one by call site, the same in both scripts (default); on an NPU, also
    ask for kernels that repeat bit by bit
| --seeds N  run N pairs with TensorFlow's own seeds instead, and compare means with a statistical band
--seed S  first seed; by default 1
"""
_CODES = {"agree": 0, "differ": 1, "not reproducible": 3}  # by verdict


def main(arguments: list[str]) -> int:
    """Verify a migration.

    Args:
        arguments: options, the original script, the migrated one or none, and after ``--`` the arguments of both.
    Returns:
        0 if the two agree, 1 if they differ, 2 if a script could not run to its end, or for wrong usage, 3 if the
        original departs from itself.
    """
    tool.make_importable()
    from convert_tf2npu.api import UsageError

    from npu_shim.rehearsal import portable
    from npu_shim.rehearsal.files import temporary
    from npu_shim.rehearsal.reports import WRITERS, write_reports
    from npu_shim.rehearsal.reports.text import to_text

    own, scripts_arguments = split_at_dashes(arguments)
    args = _parser().parse_args(_half.with_type_of_half(own))
    _check_arguments(args)
    need_tensorflow()
    note = line_printer(_COMMAND, args.quiet)
    print_copies(_COMMAND, args.report or "")
    try:
        with temporary.exit_on_signals() if args.report else temporary.command_folder("npu_shim_verify_") as new:
            folder = str(args.report or new)
            for part in ("original", "migrated"):
                shutil.rmtree(os.path.join(folder, part), ignore_errors=True)
            plan = _plan_of_arguments(args, scripts_arguments, folder)
            compared = plan.verify_against(args.against, note) if args.against else plan.verify(note)
            if args.record and args.dump and args.half:
                _add_bands_to_dumps(plan)
            code = _CODES.get(compared.verdict, 2)
            dumping = _dumped.dump_settings(args, args.deterministic)
            missing = dumping.why_nothing_dumped() if dumping is not None and code != 2 else None
            if missing:
                return print_error(_COMMAND, missing)
            if args.report:
                note(f"wrote {', '.join(write_reports(compared, folder, WRITERS))}")
            elif code == 2:
                note(f"the output of the scripts is in {folder}")
    except (UsageError, portable.RecordingError) as error:
        return print_error(_COMMAND, str(error))
    if not args.report and code != 2:
        shutil.rmtree(folder, ignore_errors=True)
    return print_output(to_text(compared).rstrip("\n"), code)


def _add_bands_to_dumps(plan: Plan) -> None:
    """Add the band of half precision to the dumps of the original, from those of its perturbed runs."""
    from npu_shim.dumps import bands
    from npu_shim.rehearsal.comparing.half_band import RUNS
    from npu_shim.rehearsal.verifying_half import PERTURBED

    assert plan.half is not None and plan.dumping is not None and plan.dumping.folder is not None
    names = [f"{PERTURBED}{number}" for number in range(1, (plan.perturbed or RUNS) + 1)]
    folder = plan.dumping.folder
    bands.add_bands_and_remove_perturbed_runs(folder, [os.path.join(folder, name) for name in names], plan.half.dtype)


def _plan_of_arguments(args: argparse.Namespace, arguments: list[str], folder: str) -> Plan:
    """Return the plan that the arguments ask for."""
    from npu_shim.rehearsal.planning import Plan

    return Plan(
        args.original,
        folder,
        args,
        arguments,
        migrated=args.migrated,
        original_arguments=args.original_arguments or "",
        migrated_arguments=args.migrated_arguments or "",
        tolerance=args.tolerance,
        seed=args.seed,
        seeds=args.seeds,
        every=args.every,
        steps=args.steps,
        predicts=args.predict,
        ranks=args.ranks,
        timeout=args.timeout,
        copies=args.copy,
        is_strict=args.strict,
        half=_half.settings(args),
        perturbed=args.perturbed,
        record=args.record,
        tensors=args.tensors or (),
        most_bytes=(args.most or 1) * 1e9,
        begins_as_recorded=args.initial_variables,
        dumping=_dumped.dump_settings(args, args.deterministic),
        display=None if args.quiet else _COMMAND,
        project=args.project,
    )


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments before ``--``."""
    from convert_tf2npu.api import add_rule_arguments

    parser = parser_of(
        "verify",
        "Runs ORIGINAL and MIGRATED with the same arguments, seeds and data order, records inputs, losses, "
        "gradients, learning rates, variables, logs, metrics and predictions, and compares them. Without MIGRATED the "
        "original is converted in memory. With --half the migrated script runs in 16 bits, and the comparison is with "
        "float32 within a band. {run} in an argument is a folder of that run, {seed} its seed. Exit codes: 0 "
        "the two agree; 1 they differ; 2 a script could not run to its end, or wrong usage; 3 the original departs "
        "from itself.",
        usage="%(prog)s [options] ORIGINAL [MIGRATED] [-- ARGUMENTS]\n"
        "       %(prog)s [options] --record DIR ORIGINAL [MIGRATED] [-- ARGUMENTS]\n"
        "       %(prog)s [options] --against DIR MIGRATED [-- ARGUMENTS]",
    )
    parser.add_argument("original", metavar="ORIGINAL", help="the script before its migration")
    parser.add_argument("migrated", metavar="MIGRATED", nargs="?", help="the script after its migration")
    add_options(
        parser,
        _OPTIONS,
        tensors={"type": _parse_steps},
        most={"type": parse_positive},
        seeds={"type": integer_parser(2)},
        seed={"type": integer_parser(0), "default": 1},
        tolerance={"type": parse_positive},
        every={"type": integer_parser(1), "default": 1},
        steps={"type": integer_parser(1)},
        ranks={"type": integer_parser(2, MOST_RANKS)},
        perturbed={"type": integer_parser(2)},
        timeout={"type": parse_positive},
    )
    _half.add_arguments(parser)
    _dumped.add_arguments(parser)
    add_rule_arguments(parser)
    return parser


def _parse_steps(text: str) -> list[int]:
    return [integer_parser(1)(part) for part in text.split(",")]


def _check_recording_options(args: argparse.Namespace) -> None:
    """Raise WrongUsage if the options of recordings cannot be used."""
    if args.dump and not (args.record or args.against):
        which = "--record, which dumps the original, or --against, which dumps the migrated script"
        raise WrongUsage(f"--dump needs {which}. Add one.")
    check_needs(args, "record", "tensors", "most")
    check_needs(args, "against", "initial_variables")
    if args.record:
        dumping = _dumped.dump_settings(args, args.deterministic)
        if args.steps and dumping is not None and args.steps < (dumping.last_step or 0):
            raise WrongUsage(f"--dump-steps has a step after the last one of --steps {args.steps}. Raise --steps.")
        if args.seeds:
            raise WrongUsage("--record writes one run, so it excludes --seeds. Give one of the two.")
        from npu_shim.rehearsal import portable

        problem = portable.target_problem(args.record)
        if problem:
            raise WrongUsage(problem)
    elif args.against:
        if args.migrated:
            raise WrongUsage(f"--against runs the migrated script only. Leave {args.original} out.")
        parser = _parser()
        for name in _OF_RECORDING.split():
            if getattr(args, name) != parser.get_default(name):
                option = f"--{name.replace('_', '-')}"
                raise WrongUsage(f"{option} comes from the recording. Leave it out with --against.")


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise WrongUsage if the arguments cannot be used."""
    check_project(args.project, args.original)
    _check_recording_options(args)
    for path in filter(None, (args.original, args.migrated)):
        check_file(path, "Give the script that trains.")
    check_output_folder("--report", args.report)
    check_output_folder("--record", args.record)
    if args.copy and os.path.relpath(args.original).startswith(os.pardir):
        place = f"the current folder, and {args.original} is not in it"
        raise WrongUsage(f"--copy copies {place}. Change to a folder above the script.")
    if args.half and (args.ranks or args.seeds):
        what, other = "runs of one process with equal random numbers", "--ranks" if args.ranks else "--seeds"
        raise WrongUsage(f"--half compares {what}, so it excludes {other}. Give one of them.")
    for name in ("steps", "seeds", "ranks", "half"):
        if args.predict and getattr(args, name):
            what = "runs that do not train"
            raise WrongUsage(f"--predict compares {what}, so it excludes --{name}. Give one of the two.")
    if args.perturbed and not (args.half or args.record):
        raise WrongUsage("--perturbed needs --half or --record. Add one of them.")
    if args.ranks and args.seeds:
        raise WrongUsage("--ranks compares one pair of runs, so it excludes --seeds. Give one of the two.")
    _half.check(args)
    _dumped.check(args)
