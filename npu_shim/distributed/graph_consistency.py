"""Check that every rank builds the same collectives in a graph.

A collective is identified by its graph, its position in the graph, its operation
and types. Tensor names are for messages only: they differ if one rank builds more
of other things, such as a summary. Before the first collective of a graph runs,
the ranks compare their lists. A rank with another graph is then named at once, and
no rank waits for a collective that never comes.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import weakref
from collections import Counter
from typing import Hashable, Iterator, MutableMapping, Sequence

import numpy as np

from npu_shim.distributed.collectives.errors import Mismatch
from npu_shim.distributed.collectives.op_key import LABEL
from npu_shim.distributed.collectives.process_group import ProcessGroup

_SUMMARY_BYTES = 32
_lock = threading.Lock()
_graphs: MutableMapping[Hashable, GraphCollectives] = weakref.WeakKeyDictionary()
_graph_count = 0
_named = threading.local()


class CollectiveId:
    """The key of one collective, and the check that the other ranks have it, too."""

    def __init__(self, key: str, collectives_of_graph: GraphCollectives | None) -> None:
        self.key, self._collectives_of_graph = key, collectives_of_graph

    def check(self, group: ProcessGroup) -> None:
        """Compare the graphs of all ranks, once per graph and group.

        Raises:
            Mismatch: the graphs differ.
        """
        if self._collectives_of_graph is not None:
            self._collectives_of_graph.check(group)


class GraphCollectives:
    """The collectives of one graph, by group; graphs are numbered in the order of their first collective."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._built: dict[str, list[str]] = {}
        self._checks: dict[str, _Check] = {}

    def add(self, group: str, operation: str, names: str) -> CollectiveId:
        """Add a collective of a group.

        Args:
            group: name of the group.
            operation: operation and types.
            names: names of the tensors.
        """
        built = self._built.setdefault(group, [])
        built.append(operation + LABEL + names)
        key = f"{operation} (collective {len(built)} of graph {self.number}){LABEL}{names}"
        return CollectiveId(key, self)

    def check(self, group: ProcessGroup) -> None:
        """Compare the graphs of all ranks. See CollectiveId.check."""
        with _lock:
            check = self._checks.setdefault(group.name, _Check())
        check.run(group, f"graph {self.number}", self._built[group.name])


def add_collective(graph: Hashable | None, group: str, operation: str, names: str) -> CollectiveId:
    """Return the id of a collective that is built in a graph, or runs eagerly if graph is None."""
    global _graph_count
    if getattr(_named, "name", None) is not None:
        return CollectiveId(_named.name + (LABEL + names if names else ""), None)
    if graph is None:
        return CollectiveId(f"{operation} (eager)", None)
    with _lock:
        of_graph = _graphs.get(graph)
        if of_graph is None:
            _graph_count += 1
            of_graph = _graphs[graph] = GraphCollectives(_graph_count)
        return of_graph.add(group, operation, names)


@contextlib.contextmanager
def name_collectives(name: str) -> Iterator[None]:
    """Inside, collectives are known by a name instead of their place, so ranks may build others in between.

    A rank that waits for a collective which another rank never runs gets an error when its time is up.

    Args:
        name: the same on every rank, and another one for each collective of a graph.
    """
    outer, _named.name = getattr(_named, "name", None), name
    try:
        yield
    finally:
        _named.name = outer


class _Check:
    """A comparison that runs once; the collectives of other threads wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = False
        self._difference: str | None = None

    def run(self, group: ProcessGroup, name: str, built: list[str]) -> None:
        with self._lock:
            if not self._done:
                self._difference = _difference_text_or_none(group, name, built)
                self._done = True
        if self._difference is not None:
            raise Mismatch(self._difference)


def _difference_text_or_none(group: ProcessGroup, name: str, built: list[str]) -> str | None:
    """Return the difference between the graphs of the ranks; None if there is none."""
    text = "\n".join(built).encode("utf-8")
    compared = "\n".join(map(_signature_without_names, built)).encode("utf-8")
    digest = hashlib.blake2b(compared, digest_size=_SUMMARY_BYTES - 8).digest()
    summary = np.frombuffer(digest + len(text).to_bytes(8, "little"), np.uint8)
    summaries = group.allgather(summary, key=f"comparison of {name}").reshape(group.size, _SUMMARY_BYTES)
    if (summaries[:, :-8] == summaries[0, :-8]).all():
        return None
    lengths = [int.from_bytes(row[-8:].tobytes(), "little") for row in summaries]
    padded = np.zeros(max(lengths), np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    texts = group.allgather(padded, key=f"difference of {name}").reshape(group.size, max(lengths))
    lists = [row[:length].tobytes().decode("utf-8").split("\n") for row, length in zip(texts, lengths)]
    return difference_text(name, group.ranks, lists)


def difference_text(name: str, ranks: Sequence[int], lists: list[list[str]]) -> str:
    """Return which rank built other collectives than most ranks, and where the lists first differ.

    Args:
        name: name of the graph.
        ranks: world ranks of the group.
        lists: the collectives of each rank.
    """
    compared = [tuple(map(_signature_without_names, one)) for one in lists]
    majority = Counter(compared).most_common(1)[0][0]
    odd = next(index for index, one in enumerate(compared) if one != majority)
    others = ", ".join(str(rank) for rank, one in zip(ranks, compared) if one == majority)
    own, usual = lists[odd], lists[compared.index(majority)]
    at = next((i for i, (a, b) in enumerate(zip(compared[odd], majority)) if a != b), min(len(own), len(usual)))
    first, second = (one[at].replace(LABEL, " of ") if at < len(one) else "none" for one in (own, usual))
    return (
        f"the ranks have built different graphs: in {name} rank {ranks[odd]} has {len(own)} collectives, rank "
        f"{others} {len(usual)}. The first difference is collective {at + 1}: {first} on rank {ranks[odd]}, "
        f"{second} on rank {others}. Build the same model on every rank."
    )


def _signature_without_names(built: str) -> str:
    """Return the part of a collective that must be the same on every rank."""
    return built.split(LABEL, 1)[0]
