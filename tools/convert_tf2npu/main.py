"""The command: ``python tools/convert_tf2npu/main.py -i SRC -o OUT``.

Exit codes: 0 done; 1 ``--check`` found changes or findings; 2 wrong usage, or files that could not be
read or parsed (the others are converted all the same).
"""
from __future__ import annotations

import argparse
import os
import sys
from typing import List, Optional, TextIO

if not __package__:  # run by its path: the package's folder is not on the path, this file's is
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from convert_tf2npu.config import Settings  # noqa: E402
from convert_tf2npu.registry import Registry  # noqa: E402
from convert_tf2npu.report import text  # noqa: E402
from convert_tf2npu.run import Run, convert_source, replace, write  # noqa: E402
from convert_tf2npu.tree import UsageError  # noqa: E402


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    made = argparse.ArgumentParser(
        prog='convert_tf2npu', description='Migrates TensorFlow training scripts to Ascend NPUs. '
        'Without -o and --in-place nothing is written and a unified diff is printed.')
    made.add_argument('-i', '--input', metavar='SRC', help='the script or folder to migrate')
    made.add_argument('-o', '--output', metavar='OUT', help='write the migrated copy of SRC here')
    made.add_argument('--in-place', action='store_true', help='change SRC itself')
    made.add_argument('--check', action='store_true',
                      help='write nothing; exit 1 when something would change or is left to you')
    made.add_argument('--force', action='store_true',
                      help='replace differing files in OUT; --in-place despite uncommitted changes')
    made.add_argument('-j', '--jobs', type=_jobs, default=0, metavar='N',
                      help='processes; by default as many as pay off')
    made.add_argument('--select', type=_codes, default=(), metavar='CODES',
                      help='only these rules, as in NPU101,NPU2')
    made.add_argument('--ignore', type=_codes, default=(), metavar='CODES', help='not these rules')
    made.add_argument('-v', '--verbose', action='store_true', help='list each rewrite too')
    made.add_argument('--list-rules', action='store_true', help='list the rules')
    made.add_argument('--explain', metavar='CODE', help='explain a rule')
    return made


def _jobs(value: str) -> int:
    if not value.isdigit() or int(value) < 1:
        raise argparse.ArgumentTypeError('%r is no number of processes; give 1 or more' % value)
    return int(value)


def _codes(value: str) -> tuple:
    codes = tuple(code.strip().upper() for code in value.split(',') if code.strip())
    known = [rule.code for rule in Registry().rules]
    for code in codes:
        if not any(k.startswith(code) for k in known):
            raise argparse.ArgumentTypeError('there is no rule %s; there are %s' % (
                code, ', '.join(known)))
    return codes


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
    if not args.input:
        made.error('what shall be migrated? Give -i SRC, a script or a folder')
    if bool(args.output) + args.in_place + args.check > 1:
        made.error('-o, --in-place and --check exclude each other; give one of them')
    try:
        run = convert_source(args.input, Settings(args.select, args.ignore), args.jobs)
        missing: List[str] = []
        if args.output:
            missing = write(run, args.output, args.force)
        elif args.in_place:
            replace(run, args.force)
    except UsageError as error:
        print('convert_tf2npu: error: %s' % error, file=sys.stderr)
        return 2
    written = bool(args.output or args.in_place)
    if not written and not args.check:
        _print_diff(run)
    _print_report(run, sys.stdout if written or args.check else sys.stderr, args.verbose or args.check)
    for relative in missing:
        print('%s: could not be read and is missing in %s' % (relative, args.output),
              file=sys.stderr)
    if missing or any(result.unreadable for _, result in run.results):
        return 2
    return 1 if args.check and any(result.diagnostics for _, result in run.results) else 0


def _explain(code: str) -> int:
    rule = Registry().by_code(code)
    if rule is None:
        print('convert_tf2npu: error: there is no rule %s; --list-rules lists them' % code,
              file=sys.stderr)
        return 2
    print('%s: %s' % (rule.code, rule.doc))
    return 0


def _print_diff(run: Run) -> None:
    sys.stdout.flush()
    for entry, result in run.results:
        if result.new is not None:
            with open(entry.path, 'rb') as stream:
                sys.stdout.buffer.write(text.diff(entry.relative, stream.read(), result.new))
    sys.stdout.buffer.flush()


def _print_report(run: Run, stream: TextIO, changes: bool) -> None:
    results = [(entry.path, result) for entry, result in run.results]
    for line in text.lines(results, changes):
        encoding = stream.encoding or 'utf-8'  # a name of a file need not be text of the terminal's
        print(line.encode(encoding, 'backslashreplace').decode(encoding), file=stream)
    if run.tree.left_out:
        print('not part of the migration: %s' % ', '.join(run.tree.left_out), file=stream)
    print(text.summary(results), file=stream)


if __name__ == '__main__':
    sys.exit(main())
