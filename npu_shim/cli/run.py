"""Run a script as if it had been migrated to the NPU, without writing files.

The rules of convert_tf2npu convert the script, and the modules that it imports
from its own folder, in memory. Everything else is as with ``python script.py``. With --alias the script stays as it is,
and npu_shim serves the packages npu_bridge, hccl, npu_device and horovod that it imports.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from typing import TYPE_CHECKING, Callable, Sequence

from npu_shim._host import host_env
from npu_shim.cli import MIGRATE, _dumped, _half, _profiled, _progress, parser
from npu_shim.cli._guard import exit_code
from npu_shim.cli._lines import fail
from npu_shim.cli._paths import missing_script, unwritable_folder
from npu_shim.distributed.ranktable.model import counted
from npu_shim.import_hook import children, hook, reachable, script, tool
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.import_hook.conversions import Conversions, Results
from npu_shim.import_hook.hook import Finder
from npu_shim.import_hook.project_files import ProjectFiles, project_root

if TYPE_CHECKING:
    from convert_tf2npu.api import FileResult

GROUP = MIGRATE
EXAMPLE = "npu-shim run train.py --batch_size 64"
IS_SCRIPT = True


def main(arguments: list[str]) -> int:
    """Run a script or a module.

    Args:
        arguments: options, the script or ``-m`` and the module, and the script's own arguments.
    Returns:
        0 if the script returns. Its exceptions, including SystemExit, go on to the caller.
    """
    try:
        tool.load()
    except tool.ToolMissing as error:
        return exit_code("npu-shim run", error)
    from convert_tf2npu.api import UsageError

    made = _parser()
    args = made.parse_args(_half.spelled_out(arguments))
    if _half.DEFAULT in (args.module or args.script):  # it belongs to the script
        args = made.parse_args(arguments)
    target = args.module or args.script
    if not target:
        made.error("missing script: give a script, or -m and a module")
    problem = None if args.module else _not_a_script(target[0])
    problem = (
        problem
        or _half.problem(args)
        or _dumped.problem(args)
        or _profiled.problem(args)
        or unwritable_folder("--numerics", args.numerics)
        or unwritable_folder("--tensorboard", args.tensorboard)
    )
    if problem:
        made.error(problem)
    if args.half:
        _half.start(_half.settings(args) or {})
    if args.numerics:
        _watch(args.numerics)
    finder: Finder | None = None
    try:
        after_tensorflow(_use_forms)
        if args.progress or args.tensorboard:
            _progress.watch(args.progress, args.tensorboard)
        dump = _dumped.settings(args, args.deterministic)
        if dump is not None:
            _dumped.start_alone(dump)
        _profiled.start(_profiled.settings(args))
        files = _enter(target[0], bool(args.module))
        if args.alias or host_env.alias():
            _serve_vendor_packages()
        if not args.alias:
            finder = hook.install(_convert(files, args), not args.no_shape_watch)
            children.follow(finder)
    except (UsageError, ValueError) as error:
        return fail("npu-shim run", str(error))
    except (KeyboardInterrupt, OSError, ImportError) as error:  # before the script begins
        return exit_code("npu-shim run", error)
    try:
        if args.module:
            script.run_module(target[0], target[1:])
        else:
            script.run_file(target[0], target[1:], finder)
    except SystemExit as end:
        if end.code or dump is None:  # with a dump it ends so after the last step
            raise
    missing = _dumped.missing(dump)
    return fail("npu-shim run", missing) if missing else 0


def _use_forms() -> None:
    from npu_shim.ops.cpu_kernels import forms

    forms.use()


def _watch(folder: str) -> None:
    """Watch the numbers of the script as soon as it has imported TensorFlow."""

    def begin() -> None:
        from npu_shim.rehearsal.numerics.watch import watch_numerics

        watch_numerics(folder)

    after_tensorflow(begin)


def _serve_vendor_packages() -> None:
    """Install the alias in this process and in the Python processes that it starts."""
    importlib.import_module("npu_shim.alias")
    host_env.process_environ()[host_env.ALIAS_VARIABLE] = "1"
    children.follow_alias()


def _parser() -> argparse.ArgumentParser:
    from convert_tf2npu.api import add_rule_arguments

    made = parser(
        "run",
        "Runs a script as if convert_tf2npu had migrated it and the modules that it imports from its own "
        "folder. No file is written. Options of npu-shim run go before the script, those of the script after it.",
        usage="%(prog)s [options] (script.py | -m module) ...",
    )
    made.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    made.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    made.add_argument(
        "-i",
        "--input",
        metavar="DIR",
        help="folder whose modules are migrated too; "
        "default: the script's folder, or the parent of the packages around it",
    )
    made.add_argument(
        "--alias",
        action="store_true",
        help="run the script without conversion, and serve the packages npu_bridge, hccl, npu_device and horovod where "
        "they are not installed",
    )
    amount = made.add_mutually_exclusive_group()
    amount.add_argument("-v", "--verbose", action="store_true", help="list each rewrite and each finding")
    amount.add_argument("-q", "--quiet", action="store_true", help="print no line about the conversion")
    made.add_argument(
        "--no-shape-watch",
        action="store_true",
        help="do not report shapes that change between steps, for which the NPU recompiles the graph",
    )
    _progress.add_arguments(made)
    _half.add_arguments(made)
    made.add_argument(
        "--numerics",
        metavar="DIR",
        help="report the first op with Inf or NaN, loss scale and gradient norms to DIR (docs/precision.md)",
    )
    _dumped.add_arguments(made)
    _profiled.add_arguments(made)
    made.add_argument(
        "--deterministic", action="store_true", help="ask an NPU for kernels that repeat bit by bit, which are slower"
    )
    add_rule_arguments(made)
    return made


def _not_a_script(path: str) -> str | None:
    """Return why a path cannot be run, None if it can."""
    wrong = missing_script(path)
    if wrong:
        return wrong
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    with open(file, "rb") as stream:
        compiled = stream.read(len(MAGIC_NUMBER)) == MAGIC_NUMBER
    if compiled or path.endswith(".pyc") or zipfile.is_zipfile(file):
        return f"{path} is not source text, so it cannot be migrated. Give the script, or run {path} with python"
    return None


def _enter(target: str, is_module: bool) -> list[str]:
    """Put the folder of a script on the path. Return the files that start: packages first, the script last."""
    if is_module:
        script.prepare_path(os.getcwd())
        return reachable.files_of_module(target, sys.path)
    if os.path.isdir(target):
        script.prepare_path(script.whole_path(target))
        return [os.path.join(target, "__main__.py")]
    script.prepare_path(os.path.dirname(os.path.realpath(target)))
    return [target]


def _convert(files: Sequence[str], args: argparse.Namespace) -> Conversions:
    """Convert the files that the script may import, and report the result in one line."""
    report = Report(args.verbose, args.quiet)
    made = conversions(files, args, args.input, sys.path, report.late)
    report.all(made.convert_all())
    return made


def conversions(
    files: Sequence[str],
    args: argparse.Namespace,
    root: str | None,
    path: Sequence[str],
    late: Callable[[str, FileResult], None] = lambda path, result: None,
) -> Conversions:
    """Return the conversions of the files that a script may import.

    Args:
        files: that start; the script is the last one.
        args: with the arguments of the rules.
        root: folder of the project; None to find it.
        path: the folders in which Python looks up imports.
        late: as for Conversions.
    """
    from convert_tf2npu.api import configuration

    root = root or (project_root(files[-1]) if files else os.getcwd())
    project = ProjectFiles(root)
    rules = configuration(args, root, project.key(files[-1]) or "" if files else "")
    return Conversions(rules, project, reachable.reachable_files(files, project, path), late)


class Report:
    """The report of the conversion on standard error.

    Args:
        verbose: True to list each rewrite and each finding, not only their numbers.
        quiet: True to report unreadable files only.
    """

    def __init__(self, verbose: bool, quiet: bool = False) -> None:
        self._verbose = verbose
        self._quiet = quiet

    def all(self, results: Results) -> None:
        """Report the files that are converted before the script starts."""
        self._list(results)
        rewrites, findings, files = _counts(results)
        parts = (
            ["nothing to rewrite in " + counted(len(results), "file")]
            if not rewrites
            else [f"{counted(rewrites, 'rewrite')} in {counted(files, 'file')}"]
        )
        if findings:
            parts.append(f"{counted(findings, 'finding')}")
        unreadable = sum(1 for _, result in results if result.unreadable)
        if unreadable:
            parts.append(
                f"{counted(unreadable, 'file')} cannot be read and {'is' if unreadable == 1 else 'are'} not converted"
            )
        if self._quiet and not unreadable:
            return
        more = "" if self._verbose or not (rewrites or findings or unreadable) else ". List them with npu-shim run -v"
        _print(", ".join(parts) + more)

    def late(self, path: str, result: FileResult) -> None:
        """Report a file that is converted only when the script imports it."""
        rewrites, findings, _ = _counts([(path, result)])
        if (rewrites or findings) and not self._quiet:
            self._list([(path, result)])
            _print(f"{counted(rewrites, 'rewrite')}, {counted(findings, 'finding')} in {path}, converted at its import")

    def _list(self, results: Results) -> None:
        if self._verbose:
            from convert_tf2npu.api import print_results

            print_results(sys.stderr, [(os.path.relpath(path), result) for path, result in results])


def _print(line: str) -> None:
    from convert_tf2npu.api import print_line

    print_line(sys.stderr, f"npu-shim run: {line}")


def _counts(results: Results) -> tuple[int, int, int]:
    """Return the numbers of rewrites, findings and changed files."""
    found = [result for _, result in results]
    rewrites, findings = sum(len(each.changes) for each in found), sum(len(each.findings) for each in found)
    return rewrites, findings, sum(each.new is not None for each in found)
