#!/usr/bin/env python3
"""The command: ``python tools/convert_tf2npu/main.py -i SRC -o OUT``.

Exit codes: 0 done; 1 ``--check`` found changes or findings; 2 wrong usage, or files that could not be
read or parsed (the others are converted all the same).
"""
from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import Any, List, Optional

if not __package__:  # run by its path: the package's folder is not on the path, this file's is
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from convert_tf2npu.arguments import conflict, notes, parser, rule_settings  # noqa: E402
from convert_tf2npu.config import ConfigError, find_config  # noqa: E402
from convert_tf2npu.convert import Converter  # noqa: E402
from convert_tf2npu.errors import UsageError  # noqa: E402
from convert_tf2npu.registry import Registry  # noqa: E402
from convert_tf2npu.report import text  # noqa: E402
from convert_tf2npu.report.folder import Reports  # noqa: E402
from convert_tf2npu.report.terminal import Terminal  # noqa: E402
from convert_tf2npu.run import Exclude, Run, convert_source, recover_in_place, replace, write  # noqa: E402
from convert_tf2npu.signals import ENDING  # noqa: E402


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command.

    Args:
        argv: the arguments, by default those of the process.

    Returns:
        the exit code.
    """
    made = parser()
    args = made.parse_args(argv)
    if args.list_rules:
        for rule in Registry().rules:
            print('%s  %s' % (rule.code, rule.title))
        return 0
    if args.explain:
        return _explain(args.explain)
    problem = conflict(args)
    if problem:
        made.error(problem)
    main_thread = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, _end) for number in ENDING[1:]
              if main_thread and signal.getsignal(number) is not signal.SIG_IGN}  # nohup has it ignored
    try:
        code = _filter(args) if args.input == '-' else _migrate(args)
        sys.stdout.flush()
        return code
    except (UsageError, ConfigError) as error:
        print('convert_tf2npu: error: %s' % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print('convert_tf2npu: interrupted', file=sys.stderr)
        return 130
    except BrokenPipeError:  # who reads the diff has seen enough of it
        _close_output()
        return 141
    except OSError as error:  # a full disk behind standard output, a file that is gone meanwhile
        _close_output()
        print('convert_tf2npu: error: %s: %s' % (error.filename or 'output', error.strerror or error), file=sys.stderr)
        return 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _close_output() -> None:
    """Let nothing that is still to be written fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)  # so that what is half made is taken away


def _explain(code: str) -> int:
    rule = Registry().by_code(code)
    if rule is None:
        print('convert_tf2npu: error: there is no rule %s; --list-rules lists them' % code,
              file=sys.stderr)
        return 2
    print('%s: %s' % (rule.code, rule.doc))
    return 0


def _migrate(args: argparse.Namespace) -> int:
    config = find_config(args.input)
    exclude = Exclude(config.exclude or (), config.folder) if args.exclude is None else \
        Exclude(args.exclude)
    if args.in_place:
        recover_in_place(args.input)
    settings = rule_settings(args, config)
    run = convert_source(args.input, settings, args.jobs or config.jobs or 0, exclude,
                         list_calls=bool(args.report))
    # The reports compare with files that --in-place replaces; they get their names last.
    code = 2 if run.unreadable else 1 if args.check and run.said else 0
    reports = Reports(run, args.report, code, settings.compat_v1) if args.report else None
    try:
        missing: List[str] = []
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
        Terminal(sys.stderr).say('%s: could not be read and is missing in %s' % (relative, args.output))
    return code


def _filter(args: argparse.Namespace) -> int:
    raw = sys.stdin.buffer.read()
    result = Converter(rule_settings(args, find_config('.'))).convert(raw)
    if not args.check:
        sys.stdout.buffer.write(raw if result.new is None else result.new)
        sys.stdout.buffer.flush()
    _print_results([('<stdin>', result)], args, Terminal(sys.stderr))
    return 2 if result.unreadable else 1 if args.check and result.diagnostics else 0


def _print_diff(run: Run) -> None:
    terminal = Terminal(sys.stdout)
    for entry, result in run.results:
        if result.new is not None:
            with open(entry.path, 'rb') as stream:
                terminal.write_diff(text.diff(entry.relative, stream.read(), result.new))


def _print_report(run: Run, args: argparse.Namespace, terminal: Terminal) -> None:
    if run.tree.left_out:
        terminal.say('not part of the migration: %s' % ', '.join(run.tree.left_out))
    if run.excluded:
        terminal.say('excluded, left as they are: %s' % text.count(len(run.excluded), 'file'))
    _print_results([(entry.path, result) for entry, result in run.results], args, terminal)
    if args.report:
        terminal.say('Reports: %s and the others beside it.' % os.path.join(args.report, 'report.html'))


def _print_results(results: List[text.Named], args: argparse.Namespace, terminal: Terminal) -> None:
    for note in notes(args):
        terminal.say(note)
    terminal.say_results(results, args.verbose or args.check)
    if args.statistics:
        for line in text.statistics(results, Registry()):
            terminal.say(line)
    for line in text.summary(results):
        terminal.say(line)


if __name__ == '__main__':
    sys.exit(main())
