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

    @abc.abstractmethod
    def beside(self, name: str) -> Dumping:
        """Return the settings for another run, whose dumps go to a folder of this name inside that of this one."""
