"""The file of a recording: one line of JSON for each event, written at once, so that a crash loses nothing."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Hashable, Sequence, Tuple

import numpy as np

from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.recording.digest import Digests, as_savable_array, is_numeric
from npu_shim.rehearsal.recording.events import Rows
from npu_shim.rehearsal.recording.kinds import GRADIENT, TAPE, VARIABLE
from npu_shim.rehearsal.recording.settings import WholeTensors

FILE = "recording.jsonl"
TENSORS = "tensors.bin"
KEPT = "kept.npy"
SMALLER = "Record fewer steps with --steps, at every n-th step only with --every, or allow more with --most."
_WHOLE_STEPS = 10  # after these, digests of large tensors are those of a share of the elements
_SHARED = (TAPE, GRADIENT, VARIABLE)
Row = Tuple[str, str, np.ndarray]  # kind, name, value
Keep = Tuple[str, str, int]  # kind, name and number of the value that is kept


def gigabytes_text(size: float) -> str:
    """Return a number of bytes as text."""
    return f"{size / 1e9:.3g} GB"


class Writer:
    """Write events to a file.

    An event is an object with the field ``event``. ``table`` names rows once: kind, name, type and shape of each.
    ``rows`` refers to a table by its number and has the step, the seconds since the start and the digests of all
    rows, as base64 of little-endian float64. All other events are ``start``, ``note`` and ``end``.

    Args:
        folder: an existing folder; the file is ``recording.jsonl``.
        keep: kind, name and number of the value that is written as it is to the file KEPT. Then the process ends.
        until: the last step. The process ends before it writes a value of a later one.
        whole: the tensors that are written to the file TENSORS, too; None to write digests only.
    Attributes:
        repeats: True if the process ends at a value or a step, to compare a script with itself.
    """

    repeats = False

    def __init__(
        self,
        folder: str,
        keep: Keep | None = None,
        until: int | None = None,
        whole: WholeTensors | None = None,
    ) -> None:
        self._folder = folder
        kind, name, self._to_come = keep or ("", "", 0)
        self._keep = kind, name
        self._until = until
        self.repeats = keep is not None or until is not None
        self._file = open(os.path.join(folder, FILE), "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._begin = time.monotonic()
        self._tables: dict[tuple[Hashable, ...], int] = {}
        self._whole = whole or WholeTensors((), (), float("inf"))
        self._size = 0
        self._tensors = open(os.path.join(folder, TENSORS), "wb") if whole else None  # noqa: SIM115 - as the file
        self._digests = Digests()

    def write_event(self, event: str, **fields: Value) -> None:
        """Write one event with its fields. A forked child of the process writes nothing."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            line = json.dumps({"event": event, **fields}) + "\n"
            self._count_bytes(len(line), fields.get("step"))
            self._file.write(line)
            self._file.flush()

    def write_rows(self, step: int, rows: Sequence[Row]) -> None:
        """Write the digests of several tensors of one step. Arrays without numbers are left out."""
        kept = [(kind, name, value) for kind, name, value in rows if is_numeric(value)]
        if not kept:
            return
        key = tuple((kind, name, value.dtype.name, value.shape) for kind, name, value in kept)
        with self._lock:
            numbers = np.concatenate(
                [
                    self._digests.compute_digest(
                        value, step if step > _WHOLE_STEPS and kind in _SHARED else None, kind == TAPE
                    )
                    for kind, _, value in kept
                ]
            )
            if all(kind != TAPE for kind, _, _ in kept):
                self._digests.release_arrays()
            if self._until is not None and step > self._until:
                os._exit(0)
            if key not in self._tables:
                self._tables[key] = len(self._tables)
                self.write_event("table", table=self._tables[key], rows=key)
            self.write_event(
                "rows",
                table=self._tables[key],
                step=step,
                seconds=self.seconds_since_start(),
                values=Rows.encode_digests(numbers),
            )
            if self._tensors is not None and os.getpid() == self._pid:
                self._write_whole_tensors(step, kept)
            self._save_kept_tensor(kept)

    def _write_whole_tensors(self, step: int, rows: Sequence[Row]) -> None:
        """Write the tensors that are wanted, and an event with the place of each."""
        assert self._tensors is not None
        for kind, name, value in rows:
            if step in self._whole.steps or kind in self._whole.kinds:
                array = as_savable_array(value)
                array = array.astype(array.dtype.newbyteorder("<"))
                place = self._tensors.tell()
                self._count_bytes(array.nbytes, step)
                self._tensors.write(array.tobytes())
                self._tensors.flush()
                self.write_event("tensor", kind=kind, name=name, dtype=array.dtype.str, offset=place)

    def _count_bytes(self, size: int, step: int | None) -> None:
        """Count bytes, and end the process if they are too many."""
        self._size += size
        if self._size > self._whole.most_bytes:
            where = "" if step is None else f" at step {step}"
            most = gigabytes_text(self._whole.most_bytes)
            text = f"npu-shim verify: the recording takes more than {most}{where}. {SMALLER}"
            print(text, file=sys.stderr, flush=True)
            os._exit(1)

    def _save_kept_tensor(self, rows: Sequence[Row]) -> None:
        for kind, name, value in rows:
            if (kind, name) == self._keep:
                if not self._to_come:
                    np.save(os.path.join(self._folder, KEPT), as_savable_array(value))
                    os._exit(0)  # from any thread, and without the end of the script
                self._to_come -= 1

    def seconds_since_start(self) -> float:
        """Return the seconds since this object was made."""
        return round(time.monotonic() - self._begin, 6)


class NoWriter(Writer):
    """For runs of which only the steps count."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def write_event(self, event: str, **fields: Value) -> None:
        """Write nothing."""

    def write_rows(self, step: int, rows: Sequence[Row]) -> None:
        """Write nothing."""
