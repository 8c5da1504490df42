#!/usr/bin/env python3
"""The command: ``python tools/convert_tf2npu/main.py -i SRC -o OUT``.

Exit codes: 0 done; 1 ``--check`` found changes or findings; 2 wrong usage, or files that could not be
read or parsed (the others are converted all the same).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any

if not __package__:  # run by its path: the package's folder is not on the path, this file's is
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from convert_tf2npu.cli.arguments import conflict, parser  # noqa: E402
from convert_tf2npu.cli.config import ConfigError  # noqa: E402
from convert_tf2npu.files.errors import UsageError  # noqa: E402
from convert_tf2npu.files.signals import ENDING  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments; without them those of the process, which has nothing else to do.

    Returns:
        the exit code.
    """
    if argv is not None:
        return _run(argv)
    gc.disable()  # it runs when the project asks for it
    try:
        return _run(None)
    finally:
        gc.freeze()  # to look through all that is left would take as long as a third of a run


def _run(argv: list[str] | None) -> int:
    made = parser()
    args = made.parse_args(argv)
    from convert_tf2npu.cli import commands as command  # only now: what is asked for help needs none of it

    if args.list_rules:
        return command.list_rules()
    if args.explain:
        return command.explain(args.explain)
    problem = conflict(args)
    if problem:
        made.error(problem)
    before = {}
    try:
        for number in ENDING[1:]:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup has it ignored
                before[number] = signal.signal(number, _end)
    except ValueError:
        pass  # not in the main thread, which alone may do so
    try:
        code = command.convert_standard_input(args) if args.input == "-" else command.migrate(args)
        sys.stdout.flush()
        return code
    except (UsageError, ConfigError) as error:
        print(f"convert_tf2npu: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("convert_tf2npu: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # who reads the diff has seen enough of it
        _close_output()
        return 141
    except OSError as error:  # a full disk behind standard output, a file that is gone meanwhile
        _close_output()
        print(
            "convert_tf2npu: error: {}: {}".format(error.filename or "output", error.strerror or error), file=sys.stderr
        )
        return 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _close_output() -> None:
    """Let nothing that is still to be written fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)  # so that what is half made is taken away


if __name__ == "__main__":
    sys.exit(main())
