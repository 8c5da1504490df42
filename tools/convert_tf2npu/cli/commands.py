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
from .config import find_config, unknown_rule_error
from .progress import Progress

if TYPE_CHECKING:
    from ..report.code_frame import Code
    from ..report.writers import Reports
    from ..rules.registry import Registry


def list_rules(say: Language) -> int:
    """Print the rules.

    Returns:
        the exit code.
    """
    for rule in _load_registry().rules:
        print(f"{rule.code}  {text.title_without_stop(rule.title, say)}{say('.')}")
    return 0


def explain(code: str, say: Language) -> int:
    """Print the help of a rule."""
    from ..report import explanation

    rules = _load_registry()
    rule = rules.by_code(code)
    if rule is None:
        problem = unknown_rule_error(code, [rule.code for rule in rules.rules])
        print(f"convert_tf2npu: {say('error')}: {say(problem)}", file=sys.stderr)
        return 2
    print(f"{rule.code}: {explanation.translated_doc(rule.doc, say)}")
    return 0


def migrate(args: argparse.Namespace, say: Language) -> int:
    """Migrate a file or folder, and print the results."""
    config = find_config(args.input)
    exclude = Exclude(config.exclude or (), config.folder) if args.exclude is None else Exclude(args.exclude)
    if args.output:
        check_output(args.input, args.output)
    elif args.in_place:
        recover_in_place(args.input)
    if args.report:
        check_reports(args.report)
    settings = rule_settings(args, config)
    progress = Progress(sys.stderr, say, quiet=args.quiet)
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
    code = 2 if run.unreadable else 1 if args.check and run.has_diagnostics else 0
    reports = _make_reports(run, args.report, code, settings.compat_v1, say) if args.report else None
    written = bool(args.output or args.in_place)
    terminal = Terminal(sys.stdout if written or args.check else sys.stderr, say)
    named = [(entry.path, result) for entry, result in run.results]
    lines = _code_to_print(args, terminal, named)
    try:
        missing: list[str] = []
        if args.output:
            missing = write_migrated_copy(run, args.output, args.force)
        elif args.in_place:
            replace_in_place(run, args.force)
        code = 2 if missing else code
        if reports:
            reports.publish(code)
    finally:
        if reports:
            reports.discard()
    if not written and not args.check:
        _print_diff(run)
    _print_report(run, args, terminal, lines, say)
    for relative in missing:
        Terminal(sys.stderr).print_line(say("{0}: unreadable, and missing in {1}").format(relative, args.output))
    return code


def _make_reports(run: Run, folder: str, code: int, compat_v1: bool, say: Language) -> Reports:
    from ..report.writers import Reports  # only here: few runs need reports

    return Reports(run, folder, code, compat_v1, say)


def _load_registry() -> Registry:
    from ..rules.registry import Registry  # only here: a remembered run needs no rules

    return Registry()


def convert_standard_input(args: argparse.Namespace, say: Language) -> int:
    """Migrate a script from standard input to standard output."""
    from ..engine.converter import Converter

    raw = sys.stdin.buffer.read()
    result = Converter(rule_settings(args, find_config("."))).convert(raw)
    if not args.check:
        sys.stdout.buffer.write(raw if result.new is None else result.new)
        sys.stdout.buffer.flush()
    terminal, named = Terminal(sys.stderr, say), [("<stdin>", result)]
    _print_results(named, args, terminal, _code_to_print(args, terminal, named, {"<stdin>": raw}), say)
    return 2 if result.unreadable else 1 if args.check and result.diagnostics else 0


def _print_diff(run: Run) -> None:
    terminal = Terminal(sys.stdout)
    for entry, result in run.results:
        if result.new is not None:
            with open(entry.path, "rb") as stream:
                terminal.print_diff(text.unified_diff(entry.relative, stream.read(), result.new))


def _code_to_print(
    args: argparse.Namespace, terminal: Terminal, named: list[text.Named], texts: dict[str, bytes] | None = None
) -> Code | None:
    """Return the lines of code to print, None to print none."""
    if not (terminal.is_terminal if args.show_source is None else args.show_source):
        return None
    from ..report.code_frame import Code  # only here: a run in a pipe needs none of it

    return Code(named, texts)


def _print_report(run: Run, args: argparse.Namespace, terminal: Terminal, code: Code | None, say: Language) -> None:
    if run.tree.left_out and not args.quiet:
        terminal.print_line(say("not part of the migration: {0}").format(", ".join(run.tree.left_out)))
    if run.excluded and not args.quiet:
        terminal.print_line(
            say("excluded from the migration: {0}").format(text.count_text(len(run.excluded), "file", say))
        )
    _print_results([(entry.path, result) for entry, result in run.results], args, terminal, code, say)
    if not run.results and not run.excluded:
        terminal.print_line(
            say("no Python file or notebook in {0}. Give the folder of the scripts.").format(args.input)
        )
    if args.report and not args.quiet:
        page = os.path.join(args.report, "report.html")
        terminal.print_line(say("Reports: {0}, also as .json, .sarif and .txt.").format(page))


def _print_results(
    results: list[text.Named], args: argparse.Namespace, terminal: Terminal, code: Code | None, say: Language
) -> None:
    for note in [] if args.quiet else notes_on_vendor_flags(args):
        terminal.print_line(say(note))
    terminal.print_results(results, args.verbose or args.check, code)
    if args.statistics:
        for line in text.statistics_lines(results, _load_registry(), say):
            terminal.print_line(line)
    for line in text.cpu_sentences(results, say) if args.quiet or not results else text.summary_sentences(results, say):
        terminal.print_line(line)
