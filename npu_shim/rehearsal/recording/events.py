"""Events of a recording beside its values, as data: what a run notes, what it changes on purpose, and how it ends."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from typing import Sequence

import numpy as np

from npu_shim._tensorflow.types import JsonObject, Value
from npu_shim.rehearsal.half_run import HalfReport
from npu_shim.rehearsal.recording.settings import Race


@dataclass(frozen=True)
class Rows:
    """Values of one step: the number of their table, the seconds since the start, and the digests, as base64."""

    table: int
    step: int
    seconds: float
    values: str

    def decode_digests(self) -> np.ndarray:
        """Return the digests, one after the other."""
        return np.frombuffer(base64.b64decode(self.values), "<f8")

    @staticmethod
    def encode_digests(digests: np.ndarray) -> str:
        """Return digests as ``values``."""
        return base64.b64encode(digests.astype("<f8").tobytes()).decode()


@dataclass
class Notes:
    """The notes of a run about itself.

    Attributes:
        tensorflow: its version; None for a run that has not imported it.
        on_device: True on a device, where a recording changes nothing.
        half: the type of 16 bits in which its graph computes.
        keras: True if the script has imported the package keras.
        broadcast: True if this rank has broadcast numbers, such as its variables.
        queue_thread: the line of a thread that fills a queue.
        unordered_op, unordered_line: type and line of an op that is not deterministic.
        racing_update: the line of an update that writes variables while the same run computes with them.
        races: all such updates.
        npu_options: the options that a dump has set.
        stopped: True if the run ended a loop of the script after the last step that was wanted.
        failed: the type of an error of the script after training that was ended before its time; None without one.
        outside: the files that a migrated script imported without conversion, because they are outside of its folder.
    """

    tensorflow: str | None = None
    on_device: bool = False
    half: str | None = None
    keras: bool = False
    broadcast: bool = False
    queue_thread: str | None = None
    unordered_op: str | None = None
    unordered_line: str | None = None
    racing_update: str | None = None
    races: Sequence[Race] = ()
    npu_options: dict[str, Value] = field(default_factory=dict)
    stopped: bool = False
    failed: str | None = None
    outside: Sequence[str] = ()

    def update(self, event: JsonObject) -> None:
        """Take the fields of one more event."""
        for name, value in event.items():
            setattr(self, name, [Race(**race) for race in value] if name == "races" else value)

    @property
    def may_vary(self) -> bool:
        """True for a run with what makes some runs of its script depart from others, and not all."""
        return bool(self.queue_thread or self.unordered_op or self.racing_update)


@dataclass(frozen=True)
class Deliberate:
    """A deliberate change that a migrated script has, or that the original is given.

    Attributes:
        what: BATCH, TRAINING_BATCH, STATIC_INITIALIZER, FIT, POLICY, INPUT_FN or GIVEN of recording.kinds.
        function, number: of a batching call, a call of fit, or one that makes an initializer.
        code, place, cost: of a change that the original is given.
    """

    what: str
    function: str = ""
    number: int = 0
    code: str = ""
    place: str = ""
    cost: str = ""


@dataclass(frozen=True)
class End:
    """The end of a process.

    Attributes:
        ended: "returned", or "error" if the script has not returned.
        steps, seconds, peak_bytes: of the run.
        half: the report of a run in half precision.
        reduced: elements that collectives have reduced after the last step.
    """

    ended: str
    steps: int = 0
    seconds: float | None = None
    peak_bytes: int | None = None
    half: HalfReport | None = None
    reduced: int = 0

    def to_json(self) -> JsonObject:
        """Return the fields of the event."""
        return asdict(self)

    @classmethod
    def from_json(cls, event: JsonObject) -> End:
        """Return what to_json() made."""
        return cls(**{**event, "half": HalfReport.from_json(event.get("half"))})
