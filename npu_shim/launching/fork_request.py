"""The messages between the process that is forked and the one that asks for the forks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Sequence


@dataclass(frozen=True)
class ForkRequest:
    """A process to fork.

    Attributes:
        name: of the process, for a message in its log.
        command: a script or ``-m`` and a module, and the arguments.
        log: path of the file for its output, which is appended.
        environment: all its environment variables.
        folder: its current folder.
        cores: the processors that it may use; those of the other side when empty.
    """

    name: str
    command: Sequence[str]
    log: str
    environment: Mapping[str, str]
    folder: str
    cores: Sequence[int]


@dataclass(frozen=True)
class Answer:
    """The answer: why it is not possible, or None, and the number of the forked process."""

    problem: str | None
    pid: int = -1
