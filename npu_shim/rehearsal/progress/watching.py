"""The settings of a watched rank."""

from __future__ import annotations

import abc
from dataclasses import dataclass


class Profiling(abc.ABC):
    """The settings of a profile, with what acts on them in the process of the rank."""

    @abc.abstractmethod
    def start(self) -> None:
        """Profile this process."""


@dataclass(frozen=True)
class Watching:
    """The tasks of a rank beside its script.

    Attributes:
        folder: of the event files; None without them.
        profiling: the profile; None without one.
    """

    folder: str | None
    profiling: Profiling | None
