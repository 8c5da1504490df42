"""Read the cause of a failure from the output of a rank."""

from __future__ import annotations

import os
import re
import signal
import sysconfig

from npu_shim.troubles.logs import troubles_in_text
from npu_shim.troubles.table import HINT

CAUSE_WAIT_S = 5.0  # for the end of the rank that the rank which failed first has lost
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'(?P<indent> +)File "(?P<path>[^"]+)", line \d+')
_CHAINED = re.compile(r"During handling of|The above exception was")
# A traceback behind one of these lines did not end the process.
_NOT_RAISED = re.compile(r"Exception ignored |--- Logging error ---|Exception in thread ")
_LIBRARIES = re.compile(
    r"[/\\](tensorflow(?:_core|_estimator)?|keras|tf_keras|keras_preprocessing|absl|npu_shim)[/\\]"
    r"|<(?:frozen|__array_function__)"
)
_SITE = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_STANDARD_LIBRARY = os.path.join(sysconfig.get_path("stdlib"), "")
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_REPORT = "npu-shim launch:"
_REPORTED = re.compile(rf"^{_REPORT} rank \d+ on \S+ (?:failed with exit code (\d+)|was ended by (SIG\w+))\. ", re.M)
_FINISHED = re.compile(rf"{_REPORT} rank (\d+) on \S+ finished\n")
_LOST_RANK = re.compile(r"\bPeerLost: .*?\brank (\d+) \(process \d+\b", re.DOTALL)


def failure_lines(output: str) -> list[str]:
    """Return the traceback with which a process ended, or its last lines.

    Frames of TensorFlow, of npu_shim and of Python's own library are counted instead of shown. The frames of the user
    and the messages are complete.

    Args:
        output: what the process has printed.
    """
    lines = output.rstrip().splitlines()
    starts = [
        index
        for index, line in enumerate(lines)
        if line.startswith(_TRACEBACK)
        and not _NOT_RAISED.match(lines[index - 1] if index else "")
        and lines[index + 1 : index + 2] != [""]  # TensorFlow writes so that of a Python function into its message
    ]
    return _fold_library_frames(lines[_first_of_chain(lines, starts) :]) if starts else lines[-10:]


def advice_lines(output: str) -> list[str]:
    """Return what explains an error of the vendor's stack in the output of a process; no line if none is known."""
    known = [trouble for trouble in troubles_in_text(output) if trouble.kind != HINT]
    return [f"known error: {known[0].advice()}"] if known else []


def lost_rank(output: str) -> int | None:
    """Return the rank whose end is the reason for which a process failed; None if the reason is another."""
    match = _LOST_RANK.search("\n".join(failure_lines(output)))
    return int(match.group(1)) if match else None


def reported_failure(rank: int, host: str, code: int, log: str) -> str:
    """Return the line that a rank under mpirun prints for its failure; reported_code() reads it.

    Args:
        rank: the rank.
        host: its host.
        code: its exit code, 128 + N if signal N ended it.
        log: path of its log.
    """
    return f"{_REPORT} rank {rank} on {host} {ending_text(code)}. Its log is {log}"


def reported_code(output: str) -> int | None:
    """Return the exit code of the rank of the first reported_failure() in an output; None without one.

    Args:
        output: of mpirun, whose own exit code need not be that of a rank.
    """
    match = _REPORTED.search(output)
    if match is None:
        return None
    code, name = match.groups()
    return int(code) if code else 128 + signal.Signals[name]


def finished_line(rank: int, host: str) -> str:
    """Return the line that a rank under mpirun prints when it has finished; unfinished_ranks() reads it."""
    return f"{_REPORT} rank {rank} on {host} finished\n"


def unfinished_ranks(output: str, ranks: int) -> list[int]:
    """Return the ranks without a line of finished_line() in an output.

    Args:
        output: of mpirun, whose exit code is 0 also if it loses the daemon of a host (Open MPI 5.0).
        ranks: number of ranks.
    """
    return sorted(set(range(ranks)) - {int(rank) for rank in _FINISHED.findall(output)})


def ending_text(code: int) -> str:
    """Return how a process ended that has an exit code other than 0."""
    name = signal_name(code - 128)
    return f"was ended by {name}" if name else f"failed with exit code {code}"


def signal_name(number: int) -> str:
    """Return the name of a signal; an empty string if there is none with this number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _first_of_chain(lines: list[str], starts: list[int]) -> int:
    """Return the first line of the last traceback, including the exceptions that caused it."""
    index = len(starts) - 1
    while index and _CHAINED.match(([line for line in lines[starts[index - 1] : starts[index]] if line] or [""])[-1]):
        index -= 1
    return starts[index]


def _fold_library_frames(lines: list[str]) -> list[str]:
    """Return the lines of tracebacks with one line in place of each sequence of frames of a library."""
    kept: list[str] = []
    hidden: list[str] = []  # the libraries of the frames since the last line that is kept
    indent, library, first_indent = "", None, ""
    blank = False  # an empty line behind the last frame, as TensorFlow puts between the frames of a message
    for line in [*lines, None]:
        frame = _FRAME.match(line or "")
        if hidden and line == "" and not blank:
            blank = True
            continue
        if frame:
            indent, library = frame.group("indent"), _library_of_file(frame.group("path"))
        elif line is None or blank or (indent and not line.startswith((indent + " ", indent + "[Previous line"))):
            indent, library = "", None
        if library:
            if frame:
                first_indent = first_indent if hidden else indent
                hidden.append(library)
                blank = False
            continue
        if hidden:
            frames = "1 frame" if len(hidden) == 1 else f"{len(hidden)} frames"
            kept.append(f"{first_indent}... {frames} of {', '.join(dict.fromkeys(hidden))} ...")
            kept += [""] * blank
            hidden, blank = [], False
        kept += [] if line is None else [line]
    return kept


def _library_of_file(path: str) -> str | None:
    """Return the name of the library that has a source file, or None for a file of the user."""
    if path.startswith(_PACKAGE):
        return "npu_shim"
    if os.path.basename(path).startswith("__autograph_generated_file"):
        return "tensorflow"
    site = _SITE.search(path)
    match = _LIBRARIES.match(path, site.end() - 1 if site else 0)
    if match:
        return {"tensorflow_core": "tensorflow"}.get(match.group(1), match.group(1)) or "Python"
    return "Python" if path.startswith(_STANDARD_LIBRARY) and not site else None
