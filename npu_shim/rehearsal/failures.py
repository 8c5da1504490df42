"""Runs that do not end as they should: what is said about them, and runs of a script that has run before."""

from __future__ import annotations

import os
import re
import signal
import textwrap
from typing import NamedTuple

from npu_shim.import_hook.other_version import SPEAKS
from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from npu_shim.rehearsal.result import RunPart, run_part
from npu_shim.rehearsal.running import TIMED_OUT, Run

_MISSING = re.compile(r"ModuleNotFoundError: No module named '(npu_bridge|npu_device|hccl|horovod)[.']")
_FINISHED = re.compile(r"rank (\d+) \(process \d+\) has exited \(its script finished\)")
_STALLED = re.compile(
    r"Stalled: (\w+) [^\n]*Reached by (rank \d+)[^\n]*\n\D*(rank \d+) \(process \d+\)(?:, at ([^\s,]+))?", re.ASCII
)
_MOST_LINES = 10  # of the message of an error; after more lines, the last one says more
_MOST = 300  # characters of output in a message
_LAST_LINES = 3  # of the output of a script that a signal ended


class NotRepeated(RuntimeError):
    """A script that has run to its end does not run to it again."""


class Ended(NamedTuple):
    """A run that has ended: the recordings of its ranks, none if it never started, and its part of a result."""

    recordings: list[Recording]
    part: RunPart


def run_to_end(run: Run, precision: str | None = None) -> Ended:
    """Make a run.

    Args:
        run: the run.
        precision: of its ops, with ``--half``.
    """
    os.makedirs(run.folder, exist_ok=True)
    code = run.run_script()
    recorded = read_recordings(run)
    return Ended(recorded, run_part(run, code, recorded, precision))


def run_again(run: Run) -> Recording:
    """Make a run of a script that has run to its end before, and return its recording.

    Raises:
        NotRepeated: if it ends in another way now.
    """
    ended = run_to_end(run)
    if ended.part.exit_code or not ended.recordings:
        raise NotRepeated(f"A run that repeats a completed one failed. {failure_sentences(ended.part)}")
    return ended.recordings[0]


def read_recordings(run: Run) -> list[Recording]:
    """Return the recordings of all ranks of a run that has ended.

    An empty list if one is missing, because its process never started.
    """
    try:
        return [read_recording(folder) for folder in run.recording_folders()]
    except OSError:
        return []


def failure_sentences(part: RunPart) -> str:
    """Return sentences about a run that did not end as it should: how it ended, its last output, and what to do."""
    with open(part.log, encoding="utf-8", errors="replace") as stream:
        output = stream.read()
    how, fix = _exit_text_and_fix(part.exit_code)
    return (
        f"{part.script} ended with {how} after {part.steps} recorded steps. {_last_output_sentence(output, fix)}"
        f"{advice_on_output(output)}{_fix_for_waiting_rank(output)}"
        f"{fix}See its output in {part.log}."
    )


def _exit_text_and_fix(code: int) -> tuple[str, str]:
    """Return how a process ended, and what to do if the system or the timeout ended it."""
    if code == TIMED_OUT:
        return f"exit code {code}", "It took longer than --timeout: raise it, or record fewer steps with --steps. "
    if code >= 0:
        return f"exit code {code}", ""
    name = signal.Signals(-code).name
    fix = "Run it alone: if it ends so, too, the cause is in the script or one of its libraries. "
    if -code == signal.SIGKILL:
        fix = "The system kills a process when memory runs out: free memory, or make the model or its batch smaller. "
    return f"signal {-code} ({name})", fix


def _last_output_sentence(output: str, is_ended: str) -> str:
    """Return a sentence with the error that ends the output of a script, or else with the last lines that it printed.

    Args:
        output: of the script.
        is_ended: not empty if another process ended it, which leaves no error.
    """
    _, mark, rest = output.strip().rpartition("Traceback (most recent call last):\n")
    lines = rest.splitlines()
    if is_ended:
        last = " | ".join([line.strip() for line in output.splitlines() if line.strip()][-_LAST_LINES:])
        return f"Its last lines: {last[-_MOST:].rstrip('.')}. " if last else "It printed nothing. "
    message = [number for number, line in enumerate(lines) if not line.startswith((" ", "\t"))][:1]
    if mark and message and len(lines) - message[0] <= _MOST_LINES:
        return f"Its error: {_shorten(' '.join(lines[message[0] :]))}. "
    return f"Its last line: {_shorten(lines[-1])}. " if lines else ""


def _shorten(text: str) -> str:
    return textwrap.shorten(text, _MOST).rstrip(".")


def _fix_for_waiting_rank(output: str) -> str:
    """Return the fix for a rank that waits for one which makes fewer steps; an empty string for others."""
    finished, stalled = _FINISHED.search(output), _STALLED.search(output)
    if finished is not None:
        return f"Rank {finished.group(1)} finishes before another rank: give all the same number of steps. "
    if stalled is None:
        return ""
    kind, waiting, other, place = stalled.groups()
    where = f"at {place}" if place else "elsewhere"
    return (
        f"{waiting.capitalize()} waits in {kind}, and {other} is {where}: give all ranks the same number of steps, and "
        "the same collectives in each. "
    )


def advice_on_output(output: str) -> str:
    """Return what to do about the errors in the output of a script that npu_shim knows, with a space at the end."""
    return _fix_for_missing_package(output) + _other_tensorflow_sentences(output)


def _other_tensorflow_sentences(output: str) -> str:
    """Return the sentences about a script of the other TensorFlow; an empty string for others."""
    match = re.search(f"^npu_shim: t({SPEAKS[1:]}.*)$", output, re.M)
    return f"T{match.group(1)} " if match else ""


def _fix_for_missing_package(output: str) -> str:
    """Return the fix for a script that imports a package which npu_shim can serve; an empty string for others."""
    missing = _MISSING.search(output)
    if missing is None:
        return ""
    return f"{missing.group(1)} is not installed: set NPU_SHIM_ALIAS=1, and npu_shim serves it. "
