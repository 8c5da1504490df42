"""The groups of a backend that are open or being opened."""

from __future__ import annotations

import threading
from typing import Callable

from npu_shim.distributed.collectives.process_group import ProcessGroup


class OpenGroups:
    """Groups by name and members."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[tuple[str, tuple[int, ...]], _OpenGroup] = {}
        self._generations: dict[tuple[str, tuple[int, ...]], int] = {}

    def get(self, name: str, members: tuple[int, ...], make: Callable[[int], ProcessGroup]) -> ProcessGroup:
        """Return a group; the same one until drop().

        Args:
            name: name of the group.
            members: world ranks of its members.
            make: opens the group; its argument counts the groups of the same name and members.
        """
        with self._lock:
            opened = self._groups.get((name, members))
            if opened is None:
                generation = self._generations[name, members] = self._generations.get((name, members), 0) + 1
                opened = self._groups[name, members] = _OpenGroup(generation)
        with opened.lock:  # not self._lock: another group may be opened while this one waits
            if opened.group is None:
                opened.group = make(opened.generation)
        return opened.group

    def drop(self, name: str, members: tuple[int, ...]) -> None:
        """Forget a group."""
        with self._lock:
            self._groups.pop((name, members), None)


class _OpenGroup:
    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.lock = threading.Lock()
        self.group: ProcessGroup | None = None
