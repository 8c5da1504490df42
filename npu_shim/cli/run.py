"""Run a script as if it had been migrated to the NPU, without writing files.

The rules of convert_tf2npu convert the script, and the modules that it imports
from its own folder, in memory. Everything else is as with ``python script.py``. With --alias the script stays as it is,
and npu_shim serves the packages npu_bridge, hccl, npu_device and horovod that it imports.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from importlib.util import MAGIC_NUMBER

from npu_shim._host import host_env
from npu_shim.cli import MIGRATE, _dumped, _half, _profiled, _progress, parser_of
from npu_shim.cli._guard import WrongUsage, exit_code
from npu_shim.cli._lines import print_error
from npu_shim.cli._paths import check_output_file, check_output_folder, check_script
from npu_shim.cli._values import add_options, add_script_arguments
from npu_shim.import_hook import migrated_run, script, tool
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.import_hook.hook import Finder
from npu_shim.import_hook.outside_files import imported_from_outside, outside_sentence

GROUP = MIGRATE
EXAMPLE = "npu-shim run train.py --batch_size 64"
IS_SCRIPT = True

_OPTIONS = """
-i --input DIR  folder whose modules are migrated too; default: the script's folder, or the parent of the packages
    around it
--alias  run the script without conversion, and serve the packages npu_bridge, hccl, npu_device and horovod where they
    are not installed
--observe FILE  run the script without conversion, and write the facts of npu-shim observe to FILE
-v --verbose  list each rewrite and each finding
| -q --quiet  print no line about the conversion
--no-shape-watch  do not report shapes that change between steps, for which the NPU recompiles the graph
--numerics DIR  report the first op with Inf or NaN, loss scale and gradient norms to DIR (docs/precision.md)
--deterministic  ask an NPU for kernels that repeat bit by bit, which are slower
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
    args = parser.parse_args(_half.with_type_of_half(arguments))
    if _half.DEFAULT in (args.module or args.script):  # it belongs to the script
        args = parser.parse_args(arguments)
    target = args.module or args.script
    if not target:
        parser.error("missing script: give a script, or -m and a module")
    if not args.module:
        _check_source(target[0])
    for options in (_half, _dumped, _profiled):
        options.check(args)
    check_output_file("--observe", args.observe)
    check_output_folder("--numerics", args.numerics)
    check_output_folder("--tensorboard", args.tensorboard)
    precision = _half.settings(args)
    if precision is not None:
        _half.rehearse_half_after_import(precision)
    if args.numerics:
        _watch_numbers(args.numerics)
    finder: Finder | None = None
    try:
        migrated_run.use_cpu_forms()
        if args.progress or args.tensorboard:
            _progress.watch_progress(args.progress, args.tensorboard)
        dumping, profiling = _dumped.dump_settings(args, args.deterministic), _profiled.profile_settings(args)
        if dumping is not None:
            dumping.start_alone()
        if profiling is not None:
            profiling.start()
        files = migrated_run.enter_script_folder(target[0], bool(args.module))
        if args.alias or host_env.is_alias_wanted():
            migrated_run.install_alias_here_and_in_children()
        if not args.alias and not args.observe:
            report = migrated_run.Report(args.verbose, args.quiet)
            finder = migrated_run.install_conversion(files, args, args.input, report, not args.no_shape_watch)
    except (UsageError, ValueError) as error:
        return print_error("npu-shim run", str(error))
    except (KeyboardInterrupt, OSError, ImportError) as error:  # before the script begins
        return exit_code("npu-shim run", error)
    try:
        if args.observe:
            from npu_shim.rehearsal.observing.observed_run import Observing, run_and_write_facts

            run_and_write_facts(target, bool(args.module), Observing(args, args.observe))
        else:
            try:
                if args.module:
                    script.run_module(target[0], target[1:])
                else:
                    script.run_file(target[0], target[1:], finder)
            finally:
                if finder is not None and not args.quiet:
                    _print_outside_files(finder.conversions.files.root)
    except UsageError as error:  # of the facts
        return print_error("npu-shim run", str(error))
    except SystemExit as end:
        if end.code or dumping is None:  # with a dump it ends so after the last step
            raise
    missing = dumping.why_nothing_dumped() if dumping is not None else None
    return print_error("npu-shim run", missing) if missing else 0


def _print_outside_files(root: str) -> None:
    """Print which files that the script imported are not converted, because they are outside of its folder."""
    outside = imported_from_outside(root)
    if outside:
        print(f"npu-shim run: {outside_sentence('convert', root, outside, '-i')}", file=sys.stderr)


def _watch_numbers(folder: str) -> None:
    """Watch the numbers of the script as soon as it has imported TensorFlow."""

    def begin() -> None:
        from npu_shim.rehearsal.numerics.numerics_watch import watch_numerics

        watch_numerics(folder)

    after_tensorflow(begin)


def _parser() -> argparse.ArgumentParser:
    from convert_tf2npu.api import add_rule_arguments

    parser = parser_of(
        "run",
        "Runs a script as if convert_tf2npu had migrated it and the modules that it imports from its own "
        "folder. No file is written. Options of npu-shim run go before the script, those of the script after it.",
        usage="%(prog)s [options] (script.py | -m module) ...",
    )
    add_script_arguments(parser)
    add_options(parser, _OPTIONS)
    _progress.add_arguments(parser)
    _half.add_arguments(parser)
    _dumped.add_arguments(parser)
    _profiled.add_arguments(parser)
    add_rule_arguments(parser)
    return parser


def _check_source(path: str) -> None:
    """Raise WrongUsage if a path is no script that can be converted."""
    check_script(path)
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    with open(file, "rb") as stream:
        compiled = stream.read(len(MAGIC_NUMBER)) == MAGIC_NUMBER
    if compiled or path.endswith(".pyc") or zipfile.is_zipfile(file):
        instead = f"Give the script, or run {path} with python"
        raise WrongUsage(f"{path} is not source text, so it cannot be migrated. {instead}")
