"""The actions of the command, after its arguments are parsed."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from ..engine.remembered import Memory, cache_folder
from ..engine.run import Exclude, Run, convert_source, recover_in_place, replace, write
from ..report import text
from ..report.terminal import Terminal
from .arguments import notes, rule_settings
from .config import find_config, no_rule
from .progress import Progress

if TYPE_CHECKING:
    from ..report.writers import Reports
    from ..rules.registry import Registry


def list_rules() -> int:
    """Print the rules.

    Returns:
        the exit code.
    """
    for rule in _rules().rules:
        print(f"{rule.code}  {rule.title}")
    return 0


def explain(code: str) -> int:
    """Print the help of a rule."""
    rules = _rules()
    rule = rules.by_code(code)
    if rule is None:
        print(f"convert_tf2npu: error: {no_rule(code, [rule.code for rule in rules.rules])}", file=sys.stderr)
        return 2
    print(f"{rule.code}: {rule.doc}")
    return 0


def migrate(args: argparse.Namespace) -> int:
    """Migrate a file or folder, and print the results."""
    config = find_config(args.input)
    exclude = Exclude(config.exclude or (), config.folder) if args.exclude is None else Exclude(args.exclude)
    if args.in_place:
        recover_in_place(args.input)
    settings = rule_settings(args, config)
    progress = Progress(sys.stderr)
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
    code = 2 if run.unreadable else 1 if args.check and run.said else 0
    reports = _reports(run, args.report, code, settings.compat_v1) if args.report else None
    try:
        missing: list[str] = []
        if args.output:
            missing = write(run, args.output, args.force)
        elif args.in_place:
            replace(run, args.force)
        code = 2 if missing else code
        if reports:
            reports.publish(code)
    finally:
        if reports:
            reports.discard()
    written = bool(args.output or args.in_place)
    if not written and not args.check:
        _print_diff(run)
    terminal = Terminal(sys.stdout if written or args.check else sys.stderr)
    _print_report(run, args, terminal)
    for relative in missing:
        Terminal(sys.stderr).say(f"{relative}: unreadable, and missing in {args.output}")
    return code


def _reports(run: Run, folder: str, code: int, compat_v1: bool) -> Reports:
    from ..report.writers import Reports  # only here: few runs need reports

    return Reports(run, folder, code, compat_v1)


def _rules() -> Registry:
    from ..rules.registry import Registry  # only here: a remembered run needs no rules

    return Registry()


def convert_standard_input(args: argparse.Namespace) -> int:
    """Migrate a script from standard input to standard output."""
    from ..engine.converter import Converter

    raw = sys.stdin.buffer.read()
    result = Converter(rule_settings(args, find_config("."))).convert(raw)
    if not args.check:
        sys.stdout.buffer.write(raw if result.new is None else result.new)
        sys.stdout.buffer.flush()
    _print_results([("<stdin>", result)], args, Terminal(sys.stderr))
    return 2 if result.unreadable else 1 if args.check and result.diagnostics else 0


def _print_diff(run: Run) -> None:
    terminal = Terminal(sys.stdout)
    for entry, result in run.results:
        if result.new is not None:
            with open(entry.path, "rb") as stream:
                terminal.write_diff(text.diff(entry.relative, stream.read(), result.new))


def _print_report(run: Run, args: argparse.Namespace, terminal: Terminal) -> None:
    if run.tree.left_out:
        terminal.say(f"not part of the migration: {', '.join(run.tree.left_out)}")
    if run.excluded:
        terminal.say(f"excluded from the migration: {text.count(len(run.excluded), 'file')}")
    _print_results([(entry.path, result) for entry, result in run.results], args, terminal)
    if args.report:
        terminal.say(f"Reports: {os.path.join(args.report, 'report.html')}, also as .json, .sarif and .txt.")


def _print_results(results: list[text.Named], args: argparse.Namespace, terminal: Terminal) -> None:
    for note in notes(args):
        terminal.say(note)
    terminal.say_results(results, args.verbose or args.check)
    if args.statistics:
        for line in text.statistics(results, _rules()):
            terminal.say(line)
    for line in text.summary(results):
        terminal.say(line)
