"""The collectives of a graph in the order in which they are built, which has to be the same on every rank.

A collective is known by its graph, its place in this order, its kind and type. The
names of tensors are for messages only: they differ where one rank builds more, a
summary say. Before the first one of a graph runs, the ranks compare their lists, so that a rank
that built another graph is named and nobody waits for what never comes.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections import Counter
from typing import Any, MutableMapping

import numpy as np

from npu_shim.distributed import collectives

_SUMMARY_BYTES = 32
_lock = threading.Lock()
_orders: MutableMapping[Any, Order] = weakref.WeakKeyDictionary()
_graphs = 0


class Ticket:
    """One collective: its key, and how to make sure that the other ranks have it as well."""

    def __init__(self, key: str, order: Order | None) -> None:
        self.key, self._order = key, order

    def check(self, group: collectives.Group) -> None:
        """Compares the graphs of all ranks, once.

        Raises:
            collectives.Mismatch: they differ.
        """
        if self._order is not None:
            self._order.check(group)


class Order:
    """The collectives of one graph, by group; graphs are numbered as they get their first collective."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._built: dict[str, list[str]] = {}
        self._checks: dict[str, _Check] = {}

    def add(self, group: str, what: str, names: str) -> Ticket:
        """Counts one more collective of a group; ``what`` says kind and types, ``names`` the tensors."""
        built = self._built.setdefault(group, [])
        built.append(what + collectives.LABEL + names)
        return Ticket(f"{what} (collective {len(built)} of graph {self.number}){collectives.LABEL}{names}", self)

    def __len__(self) -> int:
        """How many collectives the graph has."""
        return sum(map(len, self._built.values()))

    def check(self, group: collectives.Group) -> None:
        """See Ticket.check."""
        with _lock:
            check = self._checks.setdefault(group.name, _Check())
        check.run(group, f"graph {self.number}", self._built[group.name])


def count(graph: Any) -> int:
    """How many collectives a graph has."""
    return len(_orders.get(graph, ()))


def add(graph: Any | None, group: str, what: str, names: str) -> Ticket:
    """A ticket for a collective that is built in a graph, or done at once where graph is None."""
    global _graphs
    if graph is None:
        return Ticket(f"{what} (eager)", None)
    with _lock:
        order = _orders.get(graph)
        if order is None:
            _graphs += 1
            order = _orders[graph] = Order(_graphs)
        return order.add(group, what, names)


class _Check:
    """Done once; the collectives of other threads wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = False
        self._different: str | None = None

    def run(self, group: collectives.Group, name: str, built: list[str]) -> None:
        with self._lock:
            if not self._done:
                self._different = _difference(group, name, built)
                self._done = True
        if self._different is not None:
            raise collectives.Mismatch(self._different)


def _difference(group: collectives.Group, name: str, built: list[str]) -> str | None:
    text = "\n".join(built).encode("utf-8")
    same = "\n".join(map(_same, built)).encode("utf-8")
    digest = hashlib.blake2b(same, digest_size=_SUMMARY_BYTES - 8).digest()
    summary = np.frombuffer(digest + len(text).to_bytes(8, "little"), np.uint8)
    everyone = group.allgather(summary, key=f"comparison of {name}").reshape(group.size, _SUMMARY_BYTES)
    if (everyone[:, :-8] == everyone[0, :-8]).all():
        return None
    lengths = [int.from_bytes(row[-8:].tobytes(), "little") for row in everyone]
    padded = np.zeros(max(lengths), np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    texts = group.allgather(padded, key=f"difference of {name}").reshape(group.size, max(lengths))
    lists = [row[:length].tobytes().decode("utf-8").split("\n") for row, length in zip(texts, lengths)]
    return told(name, group.ranks, lists)


def told(name: str, ranks: Any, lists: list[list[str]]) -> str:
    """Says which ranks built other collectives than most, and where they begin to differ.

    Args:
        name: of the graph.
        ranks: world ranks of the group.
        lists: the collectives of each.
    """
    compared = [tuple(map(_same, one)) for one in lists]
    most = Counter(compared).most_common(1)[0][0]
    odd = next(place for place, one in enumerate(compared) if one != most)
    others = ", ".join(str(rank) for rank, one in zip(ranks, compared) if one == most)
    mine, usual = lists[odd], lists[compared.index(most)]
    at = next((i for i, (a, b) in enumerate(zip(compared[odd], most)) if a != b), min(len(mine), len(usual)))
    first, second = (one[at].replace(collectives.LABEL, " of ") if at < len(one) else "none" for one in (mine, usual))
    return (
        f"the ranks have built different graphs: in {name} rank {ranks[odd]} has {len(mine)} collectives, rank "
        f"{others} {len(usual)}. The first difference is collective {at + 1}: {first} on rank {ranks[odd]}, "
        f"{second} on rank {others}. Build the same model on every rank."
    )


def _same(built: str) -> str:
    """What has to be the same of a collective on every rank."""
    return built.split(collectives.LABEL, 1)[0]
