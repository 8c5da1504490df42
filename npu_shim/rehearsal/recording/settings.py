"""The settings of a recording: its hooks, deliberate changes, races, and tensors that are written as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Mapping, Sequence, Tuple

from npu_shim._tensorflow.types import JsonObject

if TYPE_CHECKING:
    import numpy as np

    from npu_shim.rehearsal.recording.random_seeds import Apart

Place = Tuple[str, int, int]  # path from the current folder, first and last line
_LATER_CALLS = ("training_batches", "fits", "static_initializers")  # absent in recordings without them


@dataclass(frozen=True)
class Changes:
    """The deliberate changes of a run.

    Attributes:
        places: code of a rule -> statements in which it changes something that training computes.
        batches: function and number of each batching call that drops the last partial batch; None to note the changes
            that the script has, and make none.
        fits: function and number of each call of fit that leaves out the last partial batch of arrays.
        training_batches: those whose partial batch is dropped in training only.
        static_initializers: function and number of each call that makes an initializer for full batches only.
        input: True if an NPUEstimator makes the training input static.
        float32: True if no layer of Keras computes in 16 bits.
        library: True to take tf.keras in place of the package keras.
    """

    places: Mapping[str, Sequence[Place]] = field(default_factory=dict)
    batches: Sequence[tuple[str, int]] | None = None
    input: bool = False
    float32: bool = False
    library: bool = False
    training_batches: Sequence[tuple[str, int]] = ()
    fits: Sequence[tuple[str, int]] = ()
    static_initializers: Sequence[tuple[str, int]] = ()

    def to_json(self) -> JsonObject:
        """Return it for the manifest of a recording, which another machine reads: without places."""
        if self.batches is None:
            return {"places": {}}
        batches = [list(call) for call in self.batches]
        changes = {"input": self.input, "float32": self.float32, "library": self.library}
        calls = {name: [list(call) for call in getattr(self, name)] for name in _LATER_CALLS if getattr(self, name)}
        return {"places": {}, "batches": batches, **changes, **calls}

    @classmethod
    def from_json(cls, content: JsonObject | None) -> Changes | None:
        """Return what to_json() made."""
        if content is None:
            return None
        batches = list(map(tuple, content["batches"])) if "batches" in content else None
        calls = {name: tuple(map(tuple, content.get(name, ()))) for name in _LATER_CALLS}
        return cls(**{**content, "batches": batches, **calls})


@dataclass(frozen=True)
class Race:
    """An update that writes a variable while other ops of the same run compute with it.

    Attributes:
        variable, update, read: names of ops: the variable, its update, and the first op that computes with it.
        line, read_line: the lines of the script that make update and read.
        waits: names of the ops after which the update follows the reads; empty if there are no such ops.
    """

    variable: str
    update: str
    line: str
    read: str
    read_line: str
    waits: Sequence[str]


@dataclass(frozen=True)
class WholeTensors:
    """The tensors that are written as they are: steps and kinds, and the bytes that all may take."""

    steps: Sequence[int]
    kinds: Sequence[str]
    most_bytes: float


@dataclass(frozen=True)
class HookSettings:
    """The settings of the hooks.

    Attributes:
        seed: of this run.
        by_call_site: True to derive the seeds of ops from their call sites.
        deliberate: the deliberate changes, or None.
        records_initial: True to record the variables before the first step, too.
        given: name and value of the variables to begin with; None to leave them to the script.
        apart: draws numbers of this rank where the script sets no seed; None to draw those of rank 0.
        ordered: the races in which reads come before the update; None to order none.
    """

    seed: int
    by_call_site: bool = True
    deliberate: Changes | None = None
    records_initial: bool = False
    given: Sequence[tuple[str, np.ndarray]] | None = None
    apart: Apart | None = None
    ordered: Sequence[Race] | None = None
