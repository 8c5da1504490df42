"""A step on several ranks: the all-reduces of the gradients by the links of the ranks, and what no op hides of them.

Collectives and links are those of links.json, with sources. HCCL reduces in this way:

* Ranks of a server that all have links to each other exchange parts at once: 2 steps. Others do in a ring.
* Then each device reduces its part with those of the other servers: by recursive halving and doubling if their number
  is a power of two, else in a ring (HCCL_ALGO in the documentation of CANN).
* If servers have different numbers of ranks, all ranks are one ring.
"""

from __future__ import annotations

import json
import math
import pkgutil
from typing import NamedTuple, Sequence

from npu_shim.distributed import gradient_buckets
from npu_shim.distributed.ranktable.model import RankTable
from npu_shim.rehearsal.predict.prediction import OnRanks

SHOWN_RANKS = (2, 4, 8, 16, 32, 64)
_RANKS_OF_SERVER = 8


class Link(NamedTuple):
    """Bytes a second of a device, on each link of a mesh, and the seconds of a step of a collective."""

    bandwidth: float
    step: float


class Links(NamedTuple):
    """The links of a family of processors.

    Attributes:
        mesh_ranks: of a server, which all have links to each other.
        mesh, ring: within a server, of at most and of more than these.
        across: between servers.
    """

    mesh_ranks: int
    mesh: Link
    ring: Link
    across: Link


class Message(NamedTuple):
    """A gradient, or a collective of the graph.

    Attributes:
        size: its bytes.
        ready: the seconds of a step after which all of it is computed.
        gathers: True if the ranks exchange rows in place of a sum.
    """

    size: float
    ready: float
    gathers: bool = False


def links_of(family: str) -> Links:
    """Return the links of a family of processors."""
    row = json.loads(pkgutil.get_data(__name__, "links.json") or b"")[family]
    mesh, ring, across = (Link(row[name]["bandwidth"], row[name]["step"]) for name in ("mesh", "ring", "across"))
    return Links(row["mesh"]["ranks"], mesh, ring, across)


def ranks_of_servers(ranks: int, table: RankTable | None = None) -> list[int]:
    """Return how many ranks run on each server: those of the rank table if it has as many, else 8 on each."""
    if table is not None and table.size == ranks:
        return [len(server.devices) for server in table.servers]
    of_server = max((len(server.devices) for server in table.servers), default=1) if table else _RANKS_OF_SERVER
    return [min(of_server, ranks - first) for first in range(0, ranks, of_server)]


def all_reduce_seconds(size: float, servers: Sequence[int], links: Links) -> float:
    """Return the time of an all-reduce.

    Args:
        size: bytes of a rank.
        servers: the number of ranks on each server.
        links: of the devices.
    """
    ranks, local = sum(servers), servers[0]
    if len(set(servers)) > 1:
        return _ring_seconds(size, ranks, links.across)
    if local <= links.mesh_ranks:
        within = 2 * (links.mesh.step + size / local / links.mesh.bandwidth) if local > 1 else 0.0
    else:
        within = _ring_seconds(size, local, links.ring)
    number, part = len(servers), size / local
    if number & (number - 1):
        return within + _ring_seconds(part, number, links.across)
    exchanged = 2 * (number - 1) / number * part / links.across.bandwidth
    return within + 2 * math.log2(number) * links.across.step + exchanged


def _ring_seconds(size: float, ranks: int, link: Link) -> float:
    return 2 * (ranks - 1) * (link.step + size / ranks / link.bandwidth)


def message_seconds(message: Message, servers: Sequence[int], links: Links) -> float:
    """Return the time of a message; the rows of all ranks make half the way of a sum of as many bytes."""
    if message.gathers:
        return all_reduce_seconds(message.size * sum(servers), servers, links) / 2
    return all_reduce_seconds(message.size, servers, links)


def bucketed(gradients: Sequence[Message], percentages: Sequence[float] | None = None) -> list[Message]:
    """Return the messages of gradients: those of a bucket travel together, rows after them.

    Args:
        gradients: of a step.
        percentages: of the buckets; None for the strategy of the script, HCCL's default if it has none.
    """
    dense = sorted((message for message in gradients if not message.gathers), key=lambda message: message.ready)
    sizes = [int(message.size) for message in dense]
    if percentages is not None:
        buckets = gradient_buckets.buckets_by_percentages(sizes, percentages) if sizes else []
    else:
        try:
            buckets = gradient_buckets.bucket_indices(sizes)
        except ValueError:  # the indices of the script count other gradients
            buckets = gradient_buckets.buckets_by_percentages(sizes, gradient_buckets.DEFAULT_PERCENTAGES)
    sums = [Message(sum(sizes[i] for i in bucket), max(dense[i].ready for i in bucket)) for bucket in buckets]
    return sums + [message for message in gradients if message.gathers]


def step_on_ranks(
    step: float, backward: float, messages: Sequence[Message], servers: Sequence[int], links: Links
) -> OnRanks:
    """Return a step on several ranks, each of which does the step of one. A message waits for the one before it.

    Args:
        step: seconds on one rank, without collectives.
        backward: seconds after which the last op of the backward pass ends.
        messages: in their order.
        servers: the number of ranks on each server.
        links: of the devices.
    """
    end = total = 0.0
    for message in messages:
        took = message_seconds(message, servers, links)
        end, total = max(end, message.ready) + took, total + took
    exposed = max(0.0, end - backward) if messages else 0.0
    return OnRanks(sum(servers), step + exposed, total, exposed, step / (step + exposed) if step else 1.0)


def steps_on_ranks(
    step: float, backward: float, messages: Sequence[Message], family: str, ranks: int, table: RankTable | None
) -> list[OnRanks]:
    """Return a step on 2 to 64 ranks, on as many as are asked for, and on those of a rank table."""
    links = links_of(family)
    numbers = {*SHOWN_RANKS, *([ranks] if ranks > 1 else []), *([table.size] if table and table.size > 1 else [])}
    return [
        step_on_ranks(step, backward, messages, ranks_of_servers(number, table), links) for number in sorted(numbers)
    ]
