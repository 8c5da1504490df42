"""The interface of a run to the dumps of its ops, which ``npu_shim.dumps`` makes."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npu_shim.rehearsal.recording.recorder import Recorder


class Dumping(abc.ABC):
    """The settings of dumps, with what acts on them in the process of the run.

    Attributes:
        folder: receives them; None for settings of the NPU only.
    """

    folder: str | None

    @abc.abstractmethod
    def start(self, recorder: Recorder) -> None:
        """Begin, as soon as the script has imported TensorFlow."""

    @property
    @abc.abstractmethod
    def last_step(self) -> int | None:
        """The number of steps after which the script ends, None for its own end."""

    @abc.abstractmethod
    def with_seed(self, seed: int) -> Dumping:
        """Return the settings with the random numbers of a recording with this seed."""

    @abc.abstractmethod
    def in_subfolder(self, name: str) -> Dumping:
        """Return the settings for another run, whose dumps go to a folder of this name inside that of this one."""
