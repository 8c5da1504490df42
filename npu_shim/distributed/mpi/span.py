"""The members of a group by host."""

from __future__ import annotations

from typing import Sequence


class Span:
    """The hosts of a group, in the order of their first members.

    Args:
        members: world ranks of the group, in its order.
        servers: the server of each world rank.
        rank: the world rank of this process, a member.

    Attributes:
        hosts: the world ranks of the members on each host.
        own: the index of this host.
        leaders: the first member of each host.
        here: the members on this host.
        positions: the position of each member in the sequence of all hosts' members, by its rank in the group. Members
            of one host have successive positions.
        begins: the position of the first member of each host, and the size of the group.
    """

    def __init__(self, members: Sequence[int], servers: Sequence[str], rank: int) -> None:
        by_server: dict[str, list[int]] = {}
        for member in members:
            by_server.setdefault(servers[member], []).append(member)
        self.hosts = list(by_server.values())
        self.own = list(by_server).index(servers[rank])
        self.leaders = [host[0] for host in self.hosts]
        self.here = self.hosts[self.own]
        sequence = [member for host in self.hosts for member in host]
        self.positions = [sequence.index(member) for member in members]
        self.begins = [sequence.index(leader) for leader in self.leaders] + [len(members)]
        self.is_leader = self.here[0] == rank

    @property
    def others(self) -> list[int]:
        """Return the indices of the other hosts, from the next one on."""
        count = len(self.hosts)
        return [(self.own + step) % count for step in range(1, count)]

    def positions_of_host(self, host: int) -> slice:
        """Return the positions of the members of a host."""
        return slice(self.begins[host], self.begins[host + 1])
