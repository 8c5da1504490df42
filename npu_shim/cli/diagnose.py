"""Find out why a migrated script computes other numbers on the card than the recording of the original.

The command runs the vendor's order of checks on the card, and stops at the first cause.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from typing import TYPE_CHECKING

import npu_shim
from npu_shim._host import host_device
from npu_shim.cli import NUMBERS, USAGE_ERROR, parser_of, print_output
from npu_shim.cli._guard import WrongUsage
from npu_shim.cli._lines import QUIET, line_printer, print_error
from npu_shim.cli._paths import check_file, check_folder, check_output_folder
from npu_shim.cli._values import MOST_RANKS, add_options, integer_parser, parse_positive, split_at_dashes
from npu_shim.import_hook import migrated_run, tool

if TYPE_CHECKING:
    from npu_shim.dumps.diagnosis.stage_results import ToolFinding

GROUP = NUMBERS
EXAMPLE = "npu-shim diagnose --against recording train_npu.py"

_COMMAND = "npu-shim diagnose"
_OPTIONS = f"""
--against DIR  the recording of npu-shim verify --record
-r --report DIR  folder of all runs, dumps and reports (default: npu_diagnosis)
--dumps CPU_DIR  what TensorFlow computes, of verify --record --dump; by default the CPU of this machine computes it
--ranks N  run the script on N ranks, and then on one
--tolerance X  as for npu-shim verify: relative difference at the first step
--timeout SECONDS  end a run that takes longer
{QUIET}
"""
_CODES = {"agrees": 0, "cause found": 1, "no cause found": 3}  # by verdict
_LOSS_SCALE = re.compile(r"loss_?scale", re.IGNORECASE)
_MOST_FINDINGS = 50


def main(arguments: list[str]) -> int:
    """Diagnose a migrated script.

    Args:
        arguments: options, the migrated script, and after ``--`` its arguments.
    Returns:
        0 if the card agrees with the recording, 1 if a cause was found, 2 without a card, for a script that could not
        run, or for wrong usage, 3 if no stage found the cause.
    """
    tool.make_importable()
    from convert_tf2npu.api import UsageError

    from npu_shim.dumps.diagnosis import diagnosis_reports, ladder, stages
    from npu_shim.rehearsal import portable
    from npu_shim.rehearsal.planning import Plan, tolerance_against
    from npu_shim.rehearsal.reports import write_reports

    own, of_script = split_at_dashes(arguments)
    args = _parser().parse_args(own)
    _check_arguments(args)
    note = line_printer(_COMMAND, args.quiet)
    try:
        reference = portable.load_recording(args.against)
        rules = migrated_run.rule_arguments()
        base = Plan(
            args.migrated,
            args.report,
            rules,
            of_script,
            ranks=args.ranks,
            timeout=args.timeout,
            begins_as_recorded=True,
            display=None if args.quiet else _COMMAND,
        ).run_against(reference)
        findings, source = _findings_and_source(args.migrated, rules)
        options = args.ranks, args.tolerance, args.dumps
        parts = (npu_shim.__version__, source, base.arguments, reference.manifest.to_json(), *options)
        given = ladder.Subject(
            reference,
            base,
            os.path.abspath(args.report),
            args.dumps and os.path.abspath(args.dumps),
            findings,
            _LOSS_SCALE.search(source) is not None,
            hashlib.sha256(repr(parts).encode()).hexdigest(),
            lambda on_host: args.tolerance or tolerance_against(reference, not on_host),
            note,
        )
        for stage in stages.STAGES:
            note(f"stage {stage.name}: {stage.title}")
        note(f"keeps all runs in {args.report}, ends at the first cause, and goes on after an interruption")
        diagnosis = ladder.Ladder(given).run_stages(stages.STAGES)
        note(f"wrote {', '.join(write_reports(diagnosis, args.report, diagnosis_reports.WRITERS))}")
    except (UsageError, portable.RecordingError) as error:
        return print_error(_COMMAND, str(error))
    except KeyboardInterrupt:
        line_printer(_COMMAND)("interrupted. Give the same command to go on")
        return 130
    return print_output(diagnosis_reports.to_text(diagnosis).rstrip("\n"), _CODES.get(diagnosis.verdict, USAGE_ERROR))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "diagnose",
        "Runs MIGRATED on the card and compares it with the recording of the original. If they differ, it runs it on "
        "the CPU, in another precision mode, with overflow dumps, without fusion, once more, and with dumps of all "
        "ops, until the cause is found. Exit codes: 0 the card agrees; 1 a cause was found; 2 no card, or a script "
        "that could not run, or wrong usage; 3 no cause was found.",
        usage="%(prog)s [options] --against DIR MIGRATED [-- ARGUMENTS]",
    )
    parser.add_argument("migrated", metavar="MIGRATED", help="the migrated script; an original is converted in memory")
    add_options(
        parser,
        _OPTIONS,
        against={"required": True},
        report={"default": "npu_diagnosis"},
        ranks={"type": integer_parser(2, MOST_RANKS)},
        tolerance={"type": parse_positive},
        timeout={"type": parse_positive},
    )
    return parser


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise WrongUsage if the arguments cannot be used."""
    from npu_shim.dumps.diagnosis.ladder import RESULT

    check_file(args.migrated, "Give the script that trains.")
    if args.dumps:
        check_folder(args.dumps, "Give the one of verify --record --dump.")
    check_output_folder("--report", args.report)
    if os.path.isdir(args.report) and os.listdir(args.report):
        if not os.path.isfile(os.path.join(args.report, RESULT)):
            raise WrongUsage(f"--report {args.report} has other files in it. Name a new folder.")
    device = host_device.detect_without_import()
    if not device.is_npu:
        raise WrongUsage(
            f"diagnose needs a card: {device.reason}. Copy script and recording to a host with one, and give this "
            f"command there. Here, npu-shim verify --against {args.against} {args.migrated} rules out the script."
        )


def _findings_and_source(script: str, rules: argparse.Namespace) -> tuple[list[ToolFinding], str]:
    """Return the findings of the migration tool in the script and the files that it imports, and their source."""
    from npu_shim.dumps.diagnosis.stage_results import ToolFinding

    findings = []
    texts = []
    for name, result in migrated_run.make_conversions([script], rules).convert_all():
        with open(name, encoding="utf-8", errors="replace") as stream:
            texts.append(f"{name}\n{stream.read()}")
        for finding in result.findings:
            findings.append(ToolFinding(finding.code, f"{os.path.relpath(name)}:{finding.line}", finding.message))
    return findings[:_MOST_FINDINGS], "\n".join(texts)
