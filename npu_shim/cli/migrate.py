"""Migrate a script in one go: observe a run of it, convert it with what was seen, and verify the result.

If the migrated program departs, the rewrites that rest on the observed run and that make the difference are taken back.
"""

from __future__ import annotations

import argparse
import os

from npu_shim.cli import MIGRATE, parser_of, print_output
from npu_shim.cli._copies import print_copies
from npu_shim.cli._guard import need_tensorflow
from npu_shim.cli._lines import QUIET, line_printer, print_error
from npu_shim.cli._paths import check_file, check_output_folder, check_project
from npu_shim.cli._values import add_options, integer_parser, parse_positive, split_at_dashes
from npu_shim.import_hook import tool

GROUP = MIGRATE
EXAMPLE = "npu-shim migrate train.py -o out --steps 20 -- --batch_size 64"
_COMMAND = "npu-shim migrate"
_OPTIONS = f"""
-m --module MODULE  migrate a module that runs as python -m MODULE in this folder
--project FOLDER  migrate the files of this folder that the script imports, if the script is in a folder below it; else
    those of its own folder
-o --output DIR  receives the migrated program: the script and the files of its folder or project that it imports
-r --report DIR  receives facts, reports and the output of the runs (default: the output folder with _report)
--steps N  end each run after N training steps like an early stop: finally blocks, hooks and checkpoints run
--timeout SECONDS  end a run that takes longer
--force  replace files of the output folder that differ
{QUIET}
"""
_CODES = {"agree": 0, "differ": 1, "not reproducible": 3}  # by verdict


def main(arguments: list[str]) -> int:
    """Migrate a program.

    Args:
        arguments: options, the script, and after ``--`` its arguments.
    Returns:
        0 if the migrated program agrees with the original, 1 if they differ, 2 if a script could not run to its end, or
        for wrong usage, 3 if the original departs from itself.
    """
    tool.make_importable()
    from convert_tf2npu.api import UsageError

    from npu_shim.rehearsal.files import temporary
    from npu_shim.rehearsal.migrating import reports
    from npu_shim.rehearsal.migrating.plan import BISECTION, VERIFY, Migrating, NotObserved
    from npu_shim.rehearsal.migrating.program import OutputExists
    from npu_shim.rehearsal.reports import WRITERS, write_reports

    own, of_script = split_at_dashes(arguments)
    parser = _parser()
    args = parser.parse_args(own)
    if bool(args.script) == bool(args.module):
        parser.error("give a script, or -m and a module")
    script = args.script or _script_of_module(args.module)
    folder = args.report or os.path.normpath(args.output) + "_report"
    check_file(script, "Give the script that trains, or a module of this folder as python -m takes it.")
    check_project(args.project, script)
    check_output_folder("--output", args.output)
    check_output_folder("--report", folder)
    need_tensorflow()
    os.makedirs(folder, exist_ok=True)
    print_copies(_COMMAND, *(os.path.join(folder, part) for part in (VERIFY, BISECTION)))
    note = line_printer(_COMMAND, args.quiet)
    shown = None if args.quiet else _COMMAND
    project = args.project or (os.curdir if args.module else None)
    plan = Migrating(
        *(script, of_script, args.output, folder, args, args.steps, args.force, args.timeout, note, shown),
        *(args.module, project),
    )
    try:
        with temporary.exit_on_signals():
            result = plan.migrate()
        paths = write_reports(result, folder, reports.WRITERS)
        paths += write_reports(result.verified, os.path.join(folder, VERIFY), WRITERS)
    except (UsageError, NotObserved, OutputExists) as error:
        return print_error(_COMMAND, str(error))
    note(f"wrote {', '.join(paths)}")
    return print_output(reports.to_text(result).rstrip("\n"), _CODES.get(result.verified.verdict, 2))


def _script_of_module(module: str) -> str:
    """Return the path of a module that runs in this folder; that where it should be if there is none."""
    from npu_shim.import_hook import reachable

    files = reachable.files_run_by_module(module, [os.getcwd()])
    return os.path.relpath(files[-1]) if files else module.replace(".", os.sep) + ".py"


def _parser() -> argparse.ArgumentParser:
    from convert_tf2npu.api import add_rule_arguments

    parser = parser_of(
        "migrate",
        "Observes a run of SCRIPT on the CPU, converts it and the files that it imports with what was seen, and "
        "verifies that the result computes the same. The next run of the same command uses the facts in the "
        "folder of the reports. Exit codes: 0 the two agree; 1 they differ; 2 a script could not run to its end, or "
        "wrong usage; 3 the original departs from itself.",
        usage="%(prog)s [options] -o DIR (SCRIPT | -m MODULE) [-- ARGUMENTS]",
    )
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help="the script that trains")
    add_options(
        parser,
        _OPTIONS,
        output={"required": True},
        steps={"type": integer_parser(1)},
        timeout={"type": parse_positive},
    )
    add_rule_arguments(parser)
    parser.set_defaults(distributed="auto")
    return parser
