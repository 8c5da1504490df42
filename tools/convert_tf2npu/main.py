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
from typing import Any

if not __package__:  # run by its path: sys.path has this folder instead of the one above
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from convert_tf2npu.cli.arguments import conflict, parser  # noqa: E402
from convert_tf2npu.cli.config import ConfigError  # noqa: E402
from convert_tf2npu.cli.language_option import language, make_writable  # noqa: E402
from convert_tf2npu.files.errors import UsageError  # noqa: E402
from convert_tf2npu.files.signals import ENDING  # noqa: E402


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
    say = language(sys.argv[1:] if argv is None else argv, os.environ)
    make_writable(say, sys.stdout, sys.stderr)
    made = parser(say)
    args = made.parse_args(argv)
    from convert_tf2npu.cli import commands as command  # only here: --help needs none of it

    shows = args.list_rules or args.explain
    problem = None if shows else conflict(args)
    if problem:
        made.error(problem)
    args.input = args.source or args.input
    before = {}
    try:
        for number in ENDING[1:]:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                before[number] = signal.signal(number, _end)
    except ValueError:
        pass  # only the main thread may set handlers
    try:
        if args.list_rules:
            code = command.list_rules(say)
        elif args.explain:
            code = command.explain(args.explain, say)
        else:
            code = command.convert_standard_input(args, say) if args.input == "-" else command.migrate(args, say)
        sys.stdout.flush()
        return code
    except (UsageError, ConfigError) as error:
        print(f"convert_tf2npu: {say('error')}: {say(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"convert_tf2npu: {say('interrupted')}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output, such as head, has ended
        _close_output()
        return 141
    except OSError as error:  # a full disk behind standard output, or a file that has vanished
        _close_output()
        reason = say(error.strerror or str(error))
        print(f"convert_tf2npu: {say('error')}: {error.filename or say('output')}: {reason}", file=sys.stderr)
        return 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _close_output() -> None:
    """Prevent a second failure when the stream is flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)  # unwinds the stack, so that unfinished files are removed


if __name__ == "__main__":
    sys.exit(main())
