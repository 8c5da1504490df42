"""The end of a verb: an exception becomes one line and an exit code, unless it is a fault of npu_shim itself."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import Callable

from npu_shim._host.messages import system_error_text
from npu_shim._host.packages import install_command, is_importable
from npu_shim.import_hook.tool import ToolMissing

NOT_RUN, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_PACKAGES = {"tensorflow": "TensorFlow", "numpy": "NumPy"}


class WrongUsage(Exception):
    """Raised for arguments that a verb cannot use; the text says what is wrong, and then the fix."""


def run_guarded(command: str, run: Callable[[], int]) -> int:
    """Run a verb and flush its output.

    Args:
        command: the name of the command, as in ``npu-shim verify``.
        run: the verb.
    Returns:
        Its exit code; that of exit_code() if it raises an exception. SystemExit goes on to the caller.
    """
    try:
        try:
            return run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:
        return leave(exit_code(command, error))


def exit_code(command: str, error: BaseException) -> int:
    """Print what ended a verb in one line, and return its exit code.

    Args:
        command: the name of the command.
        error: the exception that is being handled.
    Returns:
        130 for an interruption; 141 if the reader of the output has closed the pipe; else 2.
    """
    if isinstance(error, KeyboardInterrupt):
        _print(f"{command}: interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        close_output()
        return PIPE_CLOSED
    if isinstance(error, OSError):
        if error.filename is None:
            close_output()
        reason = system_error_text(error)
        _print(f"{command}: error: {f'cannot write the output: {reason}' if error.filename is None else reason}.")
        return NOT_RUN
    package = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if isinstance(error, ModuleNotFoundError) and package in _PACKAGES:
        _print(
            f"{command}: error: {_PACKAGES[package]} is missing for {sys.executable}. "
            f"Install it with {install_command(package)}."
        )
        return NOT_RUN
    if isinstance(error, (ToolMissing, WrongUsage)):
        _print(f"{command}: error: {error}")
        return NOT_RUN
    traceback.print_exc()
    _print(f"{command}: error: internal error. Report it with the traceback above and npu-shim doctor.")
    return NOT_RUN


def close_output() -> None:
    """Let nothing of the output fail a second time when Python ends."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)


def need_tensorflow() -> None:
    """Raise the error of a missing TensorFlow before a script runs whose import of it would fail."""
    if not is_importable("tensorflow"):
        raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")


def leave(code: int) -> int:
    """Return the exit code, or end the process at once if threads of a script wait for what never comes."""
    own = threading.current_thread()
    if any(thread is not own and not thread.daemon for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
