"""The modules of a run whose trees are in memory: no more than fit, and those that are most likely to be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterator

if TYPE_CHECKING:
    from .project import Module


class AtHand:
    """Modules by their paths.

    The longest unused are let go first, of those that were read to be converted. Others were read because somebody asks
    what is in them; most would be read again when their turn comes. They may take half of the place.

    Args:
        most: nodes of their trees.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked, self._converted = _Queue(), _Queue()

    def __contains__(self, path: str) -> bool:
        return path in self._asked or path in self._converted

    def get(self, path: str) -> Module | None:
        """The module of a path, which is used now; None where it is not at hand."""
        for queue in (self._asked, self._converted):
            if path in queue:
                queue[path] = queue.pop(path)  # the last now
                return queue[path]
        return None

    def keep(self, module: Module, asked: bool) -> list[Module]:
        """Add a module, or see that its turn has come.

        Args:
            module: the module; another one of its path is replaced.
            asked: whether somebody asks for it; else it is converted now.

        Returns:
            those that are let go, of which it is none.
        """
        for queue in (self._asked, self._converted):
            queue.take(module.path)
        (self._asked if asked else self._converted).add(module)
        return list(self._let_go(module))

    def _let_go(self, added: Module) -> Iterator[Module]:
        while self._asked.nodes + self._converted.nodes > self._most and len(self._asked) + len(self._converted) > 1:
            first, second = self._converted, self._asked
            if self._asked.nodes > self._most / 2:
                first, second = second, first
            queue = second if first.oldest in ("", added.path) else first
            oldest = queue.take(queue.oldest)
            if oldest is not None:
                yield oldest


class _Queue(Dict[str, "Module"]):
    """Modules, the longest unused first, and the number of their nodes."""

    nodes = 0

    @property
    def oldest(self) -> str:
        """The path of the first; empty where there is none."""
        return next(iter(self), "")

    def add(self, module: Module) -> None:
        """Add a module as the last."""
        self[module.path] = module
        self.nodes += len(module.names.parents)

    def take(self, path: str) -> Module | None:
        """Take a module out; None where there is none of that path."""
        found = self.pop(path, None)
        if found is not None:
            self.nodes -= len(found.names.parents)
        return found
