#!/usr/bin/env python3
"""The command: ``python tools/convert_tf2npu/main.py -i SRC -o OUT``.

Exit codes: 0 done; 1 ``--check`` found changes or findings; 2 wrong usage, or some files are unreadable (the others are
converted).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

if not __package__:  # run by its path: sys.path has this folder instead of the one above
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from convert_tf2npu.cli.arguments import make_parser, reason_of_conflict  # noqa: E402
from convert_tf2npu.cli.language_option import language_of_command_line, use_utf8_if_needed  # noqa: E402
from convert_tf2npu.files.errors import UsageError  # noqa: E402
from convert_tf2npu.files.signals import ENDING  # noqa: E402
from convert_tf2npu.report.language import Language  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments; None for those of the process, which then has no other work.

    Returns:
        the exit code.
    """
    collected = gc.isenabled()
    gc.disable()  # half of the CPU time otherwise; dropped modules leave no reference cycles
    try:
        return _run(argv)
    finally:
        if argv is None:
            gc.freeze()  # the last collection at exit would cost a fifth of a run
        elif collected:
            gc.enable()


def _run(argv: list[str] | None) -> int:
    translate = language_of_command_line(sys.argv[1:] if argv is None else argv, os.environ)
    use_utf8_if_needed(translate, sys.stdout, sys.stderr)
    try:
        code = _run_command(argv, translate)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _print_error(translate, translate(str(error)))
    except KeyboardInterrupt:
        print(f"convert_tf2npu: {translate('interrupted')}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output, such as head, has ended
        _point_stdout_to_devnull()
        return 141
    except FileNotFoundError as error:  # it has vanished
        return _print_error(translate, translate("file not found: {0}").format(error.filename))
    except OSError as error:  # a full disk behind standard output, or a file that cannot be read any more
        _point_stdout_to_devnull()
        return _print_error(
            translate, f"{error.filename or translate('output')}: {translate(error.strerror or str(error))}"
        )


def _run_command(argv: list[str] | None, translate: Language) -> int:
    command_line = make_parser(translate)
    args = command_line.parse_args(argv)
    from convert_tf2npu.cli import commands as command  # only here: --help needs none of it

    problem = None if args.list_rules or args.explain else reason_of_conflict(args)
    if problem:
        command_line.error(problem)
    args.input = args.source or args.input
    before = {}
    try:
        for number in ENDING[1:] if threading.current_thread() is threading.main_thread() else ():
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                before[number] = signal.signal(number, _exit_on_signal)
        if args.list_rules:
            return command.print_rules(translate)
        if args.explain:
            return command.print_rule_help(args.explain, translate)
        return (
            command.convert_standard_input(args, translate) if args.input == "-" else command.migrate(args, translate)
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_error(translate: Language, text: str) -> int:
    print(f"convert_tf2npu: {translate('error')}: {text}", file=sys.stderr)
    return 2


def _point_stdout_to_devnull() -> None:
    """Prevent a second failure when the stream is flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_on_signal(number: int, _: object) -> None:
    sys.exit(128 + number)  # unwinds the stack, so that unfinished files are removed


if __name__ == "__main__":
    sys.exit(main())
