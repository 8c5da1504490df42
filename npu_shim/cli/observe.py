"""Run a script as it is, and write what its source does not show, for the migration tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim.cli import MIGRATE, parser_of
from npu_shim.cli._guard import exit_code, need_tensorflow
from npu_shim.cli._lines import print_error
from npu_shim.cli._paths import check_output_file, check_project, check_script
from npu_shim.cli._values import add_options, add_script_arguments, integer_parser
from npu_shim.import_hook import tool

if TYPE_CHECKING:
    from npu_shim.cli._parser import Parser

GROUP = MIGRATE
EXAMPLE = "npu-shim observe -o facts.json train.py --batch_size 64"
IS_SCRIPT = True

_OPTIONS = """
--steps N  end the script after N training steps like an early stop: finally blocks, hooks and checkpoints run
--project FOLDER  observe all files of this folder, if the script is in a folder below it; else those of its own folder
--take-back  take back what the script writes to files at the end, as npu-shim verify does
-o --output FILE  receives the facts; those of earlier runs in it are kept (default facts.json)
"""


def main(arguments: list[str]) -> int:
    """Run a script or a module.

    Args:
        arguments: options, the script or ``-m`` and the module, and the script's own arguments.
    Returns:
        0 if the script returns. Its exceptions, including SystemExit, go on to the caller.
    """
    tool.make_importable()
    from convert_tf2npu.api import UsageError

    parser = _parser()
    args = parser.parse_args(arguments)
    target = args.module or args.script
    if not target:
        parser.error("missing script: give a script, or -m and a module")
    output = args.output or "facts.json"
    if not args.module:
        check_script(target[0])
    check_project(args.project, None if args.module else target[0])
    check_output_file("-o", output)
    try:
        need_tensorflow()
        from npu_shim.rehearsal.observing.observed_run import Observing, run_and_write_facts
    except ModuleNotFoundError as error:
        return exit_code("npu-shim observe", error)
    try:
        settings = Observing(args, output, args.steps, args.take_back, args.project)
        run_and_write_facts(target, bool(args.module), settings)
    except UsageError as error:  # of the facts or the configuration; the script's own errors go on
        return print_error("npu-shim observe", str(error))
    return 0


def _parser() -> Parser:
    from convert_tf2npu.api import add_rule_arguments

    parser = parser_of(
        "observe",
        "Runs a script unmodified on the CPU and writes facts: sizes, types, uses of datasets and sessions, and which "
        "lines ran. convert_tf2npu --facts FILE decides by them. No data of the program is written.",
        usage="%(prog)s [options] (script.py | -m module) ...",
    )
    add_script_arguments(parser)
    add_options(parser, _OPTIONS, steps={"type": integer_parser(1)})
    add_rule_arguments(parser)
    return parser
