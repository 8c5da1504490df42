"""The settings of a watched rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Watching:
    """The tasks of a rank beside its script.

    Attributes:
        folder: of the event files; None without them.
        profile: starts the profile of the process, a method of an object that can be pickled; None without one.
    """

    folder: str | None
    profile: Callable[[], None] | None
