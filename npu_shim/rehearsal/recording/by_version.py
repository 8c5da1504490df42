"""Findings in a graph, made once for each version of it."""

from __future__ import annotations

import weakref
from typing import Callable, Generic, TypeVar

from npu_shim._tensorflow.types import Graph

_Finding = TypeVar("_Finding")


class ByVersion(Generic[_Finding]):
    """The findings in graphs.

    Args:
        find: returns what is found in a graph.
    """

    def __init__(self, find: Callable[[Graph], _Finding]) -> None:
        self._find = find
        self._known: weakref.WeakKeyDictionary[Graph, tuple[int, _Finding]] = weakref.WeakKeyDictionary()

    def findings_in(self, graph: Graph) -> _Finding:
        """Return what is found in a graph as it is now."""
        known = self._known.get(graph)
        if known is None or known[0] != graph.version:
            known = self._known[graph] = (graph.version, self._find(graph))
        return known[1]
