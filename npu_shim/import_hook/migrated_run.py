"""Run a script as if it had been migrated: the files that it imports from its own folder are converted in memory."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING, Callable, Sequence

from npu_shim._host import host_env
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.import_hook import children, hook, reachable, script, tool
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.import_hook.conversions import Conversions, Edits, Results, edits_of_rules
from npu_shim.import_hook.hook import Finder
from npu_shim.import_hook.project_files import ProjectFiles, project_root

if TYPE_CHECKING:
    from convert_tf2npu.api import FileResult


def run_converted(options: Sequence[str], command: Sequence[str], project: str | None = None) -> None:
    """Convert a script and run it.

    Args:
        options: of the rules, as the migration tool takes them.
        command: the path of the script, or of a folder with a __main__.py, or ``-m`` and a module, and its arguments.
        project: the folder of the project; None to find it.
    Raises:
        ToolMissing: there is no migration tool.
        UsageError: its settings for this script are wrong.
    """
    rules = rule_arguments(options)
    use_cpu_forms()
    is_module = command[0] == "-m"
    target, *arguments = command[is_module:]
    files = enter_script_folder(target, is_module)
    root = project or (os.getcwd() if is_module else None)
    finder = install_conversion(files, rules, root, Report(), watches_shapes=False)
    if is_module:
        script.run_module(target, arguments)
    else:
        script.run_file(target, arguments, finder)


def rule_arguments(options: Sequence[str] = ()) -> argparse.Namespace:
    """Return the arguments of the rules for some options.

    Raises:
        ToolMissing: there is no migration tool.
    """
    tool.make_importable()
    from convert_tf2npu.api import add_rule_arguments

    parser = argparse.ArgumentParser()
    add_rule_arguments(parser)
    return parser.parse_args(options)


def use_cpu_forms() -> None:
    """Compute what TensorFlow refuses on the CPU in another form, as soon as the script has imported TensorFlow."""

    def enable_forms() -> None:
        from npu_shim.ops.cpu_kernels import forms

        forms.use_cpu_forms()

    after_tensorflow(enable_forms)


def install_alias_here_and_in_children() -> None:
    """Install the alias in this process and in the Python processes that it starts."""
    importlib.import_module("npu_shim.alias")
    host_env.process_environ()[host_env.ALIAS_VARIABLE] = "1"
    children.alias_in_children()


def enter_script_folder(target: str, is_module: bool) -> list[str]:
    """Put the folder of a script on the path. Return the files that start: packages first, the script last."""
    if is_module:
        script.enter_script_folder(["-m", target])
        return reachable.files_run_by_module(target, sys.path)
    script.enter_script_folder([target])
    return [os.path.join(target, "__main__.py")] if os.path.isdir(target) else [target]


def install_conversion(
    files: Sequence[str], args: argparse.Namespace, root: str | None, report: Report, watches_shapes: bool
) -> Finder:
    """Convert the files that the script may import, and serve them in this process and in its children.

    Args:
        files: that start; the script is the last one.
        args: with the arguments of the rules.
        root: folder of the project; None to find it.
        report: prints the result in one line.
        watches_shapes: True to report shapes that change between steps.
    """
    converted = make_conversions(files, args, root, sys.path, report.print_late)
    report.print_converted(converted.convert_all())
    finder = hook.install_finder(converted, watches_shapes)
    children.convert_in_children(finder)
    return finder


def make_conversions(
    files: Sequence[str],
    args: argparse.Namespace,
    root: str | None = None,
    path: Sequence[str] | None = None,
    report_late: Callable[[str, FileResult], None] = lambda path, result: None,
    edits: Edits = edits_of_rules,
) -> Conversions:
    """Return the conversions of the files that a script may import.

    Args:
        files: that start; the script is the last one.
        args: with the arguments of the rules.
        root: folder of the project; None to find it.
        path: the folders in which Python looks up imports; None for the folder of a script that another
            process runs, the root, and those of this one.
        report_late, edits: as for Conversions.
    """
    from convert_tf2npu.api import configuration

    if path is None:
        path = [os.path.dirname(os.path.realpath(files[-1])), *([root] if root else []), *sys.path]
    root = root or (project_root(files[-1]) if files else os.getcwd())
    project = ProjectFiles(root)
    rules = configuration(args, root, project.normalized_path(files[-1]) or "" if files else "")
    return Conversions(rules, project, reachable.reachable_files(files, project, path), report_late, edits)


class Report:
    """The report of the conversion on standard error.

    Args:
        verbose: True to list each rewrite and each finding, not only their numbers.
        quiet: True to report unreadable files only.
    """

    def __init__(self, verbose: bool = False, quiet: bool = False) -> None:
        self._verbose = verbose
        self._quiet = quiet

    def print_converted(self, results: Results) -> None:
        """Report the files that are converted before the script starts."""
        self._print_results(results)
        rewrites, findings, files = _count_rewrites_findings_and_changed_files(results)
        parts = (
            ["nothing to rewrite in " + count_text(len(results), "file")]
            if not rewrites
            else [f"{count_text(rewrites, 'rewrite')} in {count_text(files, 'file')}"]
        )
        if findings:
            parts.append(f"{count_text(findings, 'finding')}")
        unreadable = sum(1 for _, result in results if result.unreadable)
        if unreadable:
            parts.append(
                f"{count_text(unreadable, 'file')} cannot be read and "
                f"{'is' if unreadable == 1 else 'are'} not converted"
            )
        if self._quiet and not unreadable:
            return
        more = "" if self._verbose or not (rewrites or findings or unreadable) else ". List them with npu-shim run -v"
        _print_line(", ".join(parts) + more)

    def print_late(self, path: str, result: FileResult) -> None:
        """Report a file that is converted only when the script imports it."""
        rewrites, findings, _ = _count_rewrites_findings_and_changed_files([(path, result)])
        if (rewrites or findings) and not self._quiet:
            self._print_results([(path, result)])
            _print_line(
                f"{count_text(rewrites, 'rewrite')}, {count_text(findings, 'finding')} in {path}, "
                "converted at its import"
            )

    def _print_results(self, results: Results) -> None:
        if self._verbose:
            from convert_tf2npu.api import print_results

            print_results(sys.stderr, [(os.path.relpath(path), result) for path, result in results])


def _print_line(line: str) -> None:
    from convert_tf2npu.api import print_line

    print_line(sys.stderr, f"npu-shim run: {line}")


def _count_rewrites_findings_and_changed_files(results: Results) -> tuple[int, int, int]:
    """Return the numbers of rewrites, findings and changed files."""
    of_files = [result for _, result in results]
    rewrites = sum(len(result.changes) for result in of_files)
    findings = sum(len(result.findings) for result in of_files)
    return rewrites, findings, sum(result.new is not None for result in of_files)
