"""Read the recording of a run."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import List, NamedTuple, Sequence, Tuple

import numpy as np

from npu_shim.rehearsal.recording.digest import NOT_FINITE, digest_length
from npu_shim.rehearsal.recording.events import Deliberate, End, Notes, Rows
from npu_shim.rehearsal.recording.kinds import FETCH, GRADIENT, INITIAL, LOG, LOSS, SUMMARY, TAPE, VARIABLE
from npu_shim.rehearsal.recording.writer import FILE, TENSORS

Shape = Tuple[str, str, str, List[int]]  # kind, name, type and shape of a value


class RecordingError(ValueError):
    """A folder is no recording that can be compared with."""


class Whole(NamedTuple):
    """The place of a whole tensor: a file, the type of its elements, and the offset of the first one."""

    path: str
    dtype: str
    offset: int


class Value(NamedTuple):
    """One recorded value: step, seconds since the start of the run, shape, digest, and place of the tensor if kept."""

    step: int
    seconds: float
    shape: tuple[int, ...]
    digest: np.ndarray
    whole: Whole | None = None

    def load_tensor(self) -> np.ndarray | None:
        """Return the tensor; None if it is not kept."""
        if self.whole is None:
            return None
        with open(self.whole.path, "rb") as file:
            file.seek(self.whole.offset)
            count = int(np.prod(self.shape, dtype=np.int64))
            return np.fromfile(file, np.dtype(self.whole.dtype), count).reshape(self.shape)


@dataclass
class Stream:
    """All values of one kind and name in the order of the run.

    Attributes:
        kind: one of recording.kinds.
        name: of the tensor, variable, tag or metric.
        dtype: name of the type of its elements.
        order: the place of its first value among all streams.
        values: the values.
    """

    kind: str
    name: str
    dtype: str
    order: int
    values: list[Value] = field(default_factory=list)


@dataclass
class Recording:
    """A recorded run.

    Attributes:
        streams: by kind and name.
        notes: what the run notes about itself.
        python: the version of Python.
        end: None if the process was killed.
        seeds: call, value and line of each seed that the script sets.
        lines: by kind and name, the line of the script that makes the values.
        skips: number of the optimizer, from 0, and its step, from 1, of each step that the loss scale skipped.
        deliberate: the deliberate changes.
        saved: path and line of each checkpoint that a rank writes.
        restored: path and line of each checkpoint from which the script starts.
    """

    streams: dict[tuple[str, str], Stream]
    notes: Notes = field(default_factory=Notes)
    python: str | None = None
    end: End | None = None
    skips: list[tuple[int, int]] = field(default_factory=list)
    seeds: list[tuple[str, str, str]] = field(default_factory=list)
    lines: dict[tuple[str, str], str] = field(default_factory=dict)
    deliberate: list[Deliberate] = field(default_factory=list)
    saved: dict[str, str] = field(default_factory=dict)
    restored: dict[str, str] = field(default_factory=dict)

    def streams_of_kind(self, kind: str) -> list[Stream]:
        """Return the streams of a kind in the order of the run."""
        return sorted(
            (stream for stream in self.streams.values() if stream.kind == kind), key=lambda stream: stream.order
        )

    @property
    def steps(self) -> int:
        """The number of training steps."""
        return max((value.step for stream in self.streams.values() for value in stream.values), default=0)

    @property
    def seconds_per_step(self) -> float | None:
        """The median time between two training steps; None with fewer than three."""
        first = next(iter(self.streams_of_kind(GRADIENT) or self.streams_of_kind(LOSS)), None)
        times = [value.seconds for value in first.values] if first else []
        return float(np.median(np.diff(times))) if len(times) > 2 else None


def read_recording(folder: str) -> Recording:
    """Read the recording in a folder, without a last line that a crash has cut off.

    Loss and gradients of tapes of skipped steps are left out, too.

    Raises:
        OSError: if there is none.
        RecordingError: if it has events of another form, as those of another release.
    """
    try:
        return _read_events(folder)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        path = os.path.join(folder, FILE)
        raise RecordingError(
            f"{path} has events that this release cannot read. Record again with this release."
        ) from error


def _read_events(folder: str) -> Recording:
    recording = Recording({})
    tables: dict[int, list[Shape]] = {}
    ahead: list[Stream] = []  # with losses and gradients of tapes since the last update
    with open(os.path.join(folder, FILE), encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                break
            event = json.loads(line)
            kind = event.pop("event")
            if kind == "table":
                tables[event["table"]] = event["rows"]
            elif kind == "rows":
                rows = Rows(**event)
                kinds = {row[0] for row in tables[rows.table]}
                streams = _add_values(recording, tables[rows.table], rows)
                ahead = (
                    [] if GRADIENT in kinds else ahead + [stream for stream in streams if stream.kind in (LOSS, TAPE)]
                )
            elif kind == "skip":
                recording.skips.append((event["optimizer"], event["number"]))
                for stream in ahead:
                    stream.values.pop()
                ahead = []
            elif kind == "tensor":
                values = recording.streams[event["kind"], event["name"]].values
                whole = Whole(os.path.join(folder, TENSORS), event["dtype"], event["offset"])
                values[-1] = values[-1]._replace(whole=whole)
            elif kind == "seed":
                recording.seeds.append((event["call"], event["value"], event["line"]))
            elif kind == "line":
                recording.lines[event["kind"], event["name"]] = event["line"]
            elif kind == "saved":
                recording.saved.setdefault(event["path"], event["line"])
            elif kind == "restored":
                recording.restored.setdefault(event["path"], event["line"])
            elif kind == "deliberate":
                recording.deliberate.append(Deliberate(**event))
            elif kind == "start":
                recording.python = event.get("python")
            elif kind == "end":
                recording.end = End.from_json(event)
            else:
                recording.notes.update(event)
    recording.streams = {key: stream for key, stream in recording.streams.items() if stream.values}
    counted = recording.streams_of_kind(GRADIENT) or recording.streams_of_kind(VARIABLE)
    if not counted and not recording.notes.on_device:
        _number_steps_by_tapes(recording)
    return recording


def read_initial_variables(folder: str) -> list[tuple[str, np.ndarray]]:
    """Return name and value of the variables before the first step, in the order of the recording in a folder."""
    variables = [
        (value.seconds, stream.name, value.load_tensor())
        for stream in read_recording(folder).streams_of_kind(INITIAL)
        for value in stream.values
    ]
    return [
        (name, tensor) for _, name, tensor in sorted(variables, key=lambda variable: variable[0]) if tensor is not None
    ]


def drop_overflows(rounded: Recording, others: Sequence[Recording]) -> None:
    """Drop what is fetched, summarised or logged as Inf or NaN in half precision, as often as steps were skipped.

    A skipped step may return the overflow for which it was skipped.

    Args:
        rounded: the recording of the run in half precision.
        others: recordings in float32 with the same skipped steps; the same values of them are dropped.
    """
    for kind in (FETCH, SUMMARY, LOG):
        for stream in rounded.streams_of_kind(kind):
            places = [place for place, value in enumerate(stream.values) if value.digest[NOT_FINITE]][
                : len(rounded.skips)
            ]
            for recording in (rounded, *others):
                partner = recording.streams.get((kind, stream.name))
                if partner is not None:
                    partner.values = [value for place, value in enumerate(partner.values) if place not in places]
                    if not partner.values:
                        del recording.streams[kind, stream.name]


def _add_values(recording: Recording, shapes: list[Shape], rows: Rows) -> list[Stream]:
    """Add the values of an event. Return their streams."""
    streams = []
    numbers = rows.decode_digests()
    start = 0
    for kind, name, dtype, shape in shapes:
        end = start + digest_length(tuple(shape))
        stream = recording.streams.get((kind, name))
        if stream is None:
            stream = recording.streams[kind, name] = Stream(kind, name, dtype, len(recording.streams))
        stream.values.append(Value(rows.step, rows.seconds, tuple(shape), numbers[start:end]))
        streams.append(stream)
        start = end
    return streams


def _number_steps_by_tapes(recording: Recording) -> None:
    """Number the steps of a script by its gradient tapes if neither it nor an optimizer updates their variables."""
    tapes = [stream for stream in recording.streams.values() if stream.kind in (LOSS, TAPE)]
    losses = [[value.seconds for value in stream.values] for stream in tapes if stream.kind == LOSS]
    times = max(losses, key=len, default=[])
    for stream in recording.streams.values():
        for number, value in enumerate(stream.values):
            step = number + 1 if stream in tapes else int(np.searchsorted(times, value.seconds, "right"))
            stream.values[number] = value._replace(step=step)
