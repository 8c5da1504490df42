"""The status of a rank as it reports it: a line of JSON, short enough for one write to a pipe."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields

PIPE_VARIABLE = "NPU_SHIM_PROGRESS_PIPE"  # number of the file descriptor to which a rank writes its status
_TEXT = 160  # the longest text, in characters; a line stays below PIPE_BUF


@dataclass(frozen=True)
class Status:
    """The state of a rank.

    Attributes:
        rank: its rank.
        name: shown in place of the rank, with the time of the run; empty for a rank of a job.
        step: number of training steps so far; None before the first one.
        seconds: since its start.
        rate: steps per second in the last seconds; None if it is unknown.
        own_step_s: seconds per step that it does not wait in a collective; None if it is unknown.
        loss: the last loss that was logged, summarised or returned; None if it is unknown.
        left_s: seconds until its last step; None if it is unknown.
        memory_bytes: resident memory of its process.
        idle_s: seconds since its last step, or since its start.
        place: the line of the script that it is at, if it is idle.
        collective: the collective in which it waits, if it is idle.
        code: its exit code; None while it runs.
    """

    rank: int
    step: int | None = None
    seconds: float = 0.0
    rate: float | None = None
    own_step_s: float | None = None
    loss: float | None = None
    memory_bytes: int | None = None
    idle_s: float = 0.0
    place: str = ""
    collective: str = ""
    code: int | None = None
    name: str = ""
    left_s: float | None = None


_NAMES = {field.name for field in fields(Status)}


def encode(status: Status) -> bytes:
    """Return a status as a line of JSON."""
    values = {name: value for name, value in asdict(status).items() if value not in (None, "")}
    for name in ("place", "collective"):
        if name in values:
            values[name] = values[name][-_TEXT:] if name == "place" else values[name][:_TEXT]
    return json.dumps(values).encode() + b"\n"


def decode(line: bytes) -> Status:
    """Return the status of a line that encode() made; unknown fields are left out."""
    return Status(**{name: value for name, value in json.loads(line.decode()).items() if name in _NAMES})


def send(pipe: int, line: bytes) -> None:
    """Write a line to a pipe; drop it if the pipe is full, or nobody reads it any more."""
    try:
        os.write(pipe, line)
    except (BlockingIOError, BrokenPipeError):
        return
