"""The actions of the command, after its arguments are parsed."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from ..engine.remembered import Memory, cache_folder
from ..engine.run import Exclude, Run, convert_source, recover_in_place, replace_in_place, write_migrated_copy
from ..files.targets import check_output, check_reports
from ..report import text
from ..report.language import Language
from ..report.terminal import Terminal
from .arguments import notes_on_vendor_flags, rule_settings
from .config import read_nearest_config, unknown_rule_error
from .progress import Progress

if TYPE_CHECKING:
    from ..report.code_frame import SourceLines
    from ..report.writers import Reports
    from ..rules.registry import Registry


def print_rules(translate: Language) -> int:
    """Print the rules.

    Returns:
        the exit code.
    """
    for rule in _load_registry().rules:
        print(f"{rule.code}  {text.title_without_stop(rule.title, translate)}{translate('.')}")
    return 0


def print_rule_help(code: str, translate: Language) -> int:
    """Print the help of a rule."""
    from ..report import explanation

    rules = _load_registry()
    rule = rules.by_code(code)
    if rule is None:
        problem = unknown_rule_error(code, [rule.code for rule in rules.rules])
        print(f"convert_tf2npu: {translate('error')}: {translate(problem)}", file=sys.stderr)
        return 2
    print(f"{rule.code}: {explanation.translated_doc(rule.doc, translate)}")
    return 0


def migrate(args: argparse.Namespace, translate: Language) -> int:
    """Migrate a file or folder, and print the results."""
    config = read_nearest_config(args.input)
    exclude = Exclude(config.exclude or (), config.folder) if args.exclude is None else Exclude(args.exclude)
    if args.output:
        check_output(args.input, args.output)
    elif args.in_place:
        recover_in_place(args.input)
    if args.report:
        check_reports(args.report)
    settings = rule_settings(args, config)
    progress = Progress(sys.stderr, translate, quiet=args.quiet)
    try:
        run = convert_source(
            args.input,
            settings,
            args.jobs or config.jobs or 0,
            exclude,
            list_calls=bool(args.report),
            memory=Memory(cache_folder()) if args.cache else None,
            progress=progress.show,
        )
    finally:
        progress.close()
    # Written now, because --in-place replaces the files that the reports show; published last.
    exit_code = 2 if run.unreadable else 1 if args.check and run.has_diagnostics else 0
    reports = _make_reports(run, args.report, exit_code, settings.compat_v1, translate) if args.report else None
    written = bool(args.output or args.in_place)
    terminal = Terminal(sys.stdout if written or args.check else sys.stderr, translate)
    named = [(entry.path, result) for entry, result in run.results]
    lines = _source_lines_to_print(args, terminal, named)
    try:
        missing: list[str] = []
        if args.output:
            missing = write_migrated_copy(run, args.output, args.force)
        elif args.in_place:
            replace_in_place(run, args.force)
        exit_code = 2 if missing else exit_code
        if reports:
            reports.publish(exit_code)
    finally:
        if reports:
            reports.discard()
    if not written and not args.check:
        _print_diff(run)
    _print_report(run, args, terminal, lines, translate)
    for relative in missing:
        Terminal(sys.stderr).print_line(translate("{0}: unreadable, and missing in {1}").format(relative, args.output))
    return exit_code


def _make_reports(run: Run, folder: str, exit_code: int, compat_v1: bool, translate: Language) -> Reports:
    from ..report.writers import Reports  # only here: few runs need reports

    return Reports(run, folder, exit_code, compat_v1, translate)


def _load_registry() -> Registry:
    from ..rules.registry import Registry  # only here: a remembered run needs no rules

    return Registry()


def convert_standard_input(args: argparse.Namespace, translate: Language) -> int:
    """Migrate a script from standard input to standard output."""
    from ..engine.converter import Converter

    raw = sys.stdin.buffer.read()
    result = Converter(rule_settings(args, read_nearest_config("."))).convert(raw)
    if not args.check:
        sys.stdout.buffer.write(raw if result.new is None else result.new)
        sys.stdout.buffer.flush()
    terminal, named = Terminal(sys.stderr, translate), [("<stdin>", result)]
    _print_results(named, args, terminal, _source_lines_to_print(args, terminal, named, {"<stdin>": raw}), translate)
    return 2 if result.unreadable else 1 if args.check and result.diagnostics else 0


def _print_diff(run: Run) -> None:
    terminal = Terminal(sys.stdout)
    for entry, result in run.results:
        if result.new is not None:
            with open(entry.path, "rb") as stream:
                terminal.print_diff(text.unified_diff(entry.relative, stream.read(), result.new))


def _source_lines_to_print(
    args: argparse.Namespace, terminal: Terminal, named: list[text.Named], texts: dict[str, bytes] | None = None
) -> SourceLines | None:
    """Return the lines of code to print, None to print none."""
    if not (terminal.is_terminal if args.show_source is None else args.show_source):
        return None
    from ..report.code_frame import SourceLines  # only here: a run in a pipe needs none of it

    return SourceLines(named, texts)


def _print_report(
    run: Run, args: argparse.Namespace, terminal: Terminal, source_lines: SourceLines | None, translate: Language
) -> None:
    if run.tree.left_out and not args.quiet:
        terminal.print_line(translate("not part of the migration: {0}").format(", ".join(run.tree.left_out)))
    if run.excluded and not args.quiet:
        terminal.print_line(
            translate("excluded from the migration: {0}").format(text.count_text(len(run.excluded), "file", translate))
        )
    _print_results([(entry.path, result) for entry, result in run.results], args, terminal, source_lines, translate)
    if not run.results and not run.excluded:
        terminal.print_line(
            translate("no Python file or notebook in {0}. Give the folder of the scripts.").format(args.input)
        )
    if args.report and not args.quiet:
        page = os.path.join(args.report, "report.html")
        terminal.print_line(translate("Reports: {0}, also as .json, .sarif and .txt.").format(page))


def _print_results(
    results: list[text.Named],
    args: argparse.Namespace,
    terminal: Terminal,
    source_lines: SourceLines | None,
    translate: Language,
) -> None:
    for note in [] if args.quiet else notes_on_vendor_flags(args):
        terminal.print_line(translate(note))
    terminal.print_results(results, args.verbose or args.check, source_lines)
    if args.statistics:
        for line in text.statistics_lines(results, _load_registry(), translate):
            terminal.print_line(line)
    for line in (
        text.cpu_sentences(results, translate)
        if args.quiet or not results
        else text.summary_sentences(results, translate)
    ):
        terminal.print_line(line)
