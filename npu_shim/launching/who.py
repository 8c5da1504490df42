"""Which ranks this host has to start: from a number of ranks, or from a rank table."""
from __future__ import annotations

from typing import List, Optional, Sequence

from npu_shim.distributed.ranktable import RankTable, Server
from npu_shim.distributed.this_host import is_this_host
from npu_shim.launching.plan import Seat


def seats_of_one_host(ranks: int, devices: Optional[Sequence[int]]) -> List[Seat]:
    """The ranks of a job on this host alone.

    Args:
        ranks: how many.
        devices: the device of each; 0, 1, ... when None.
    Raises:
        ValueError: another number of devices, or one of them twice.
    """
    if devices is None:
        devices = range(ranks)
    if len(devices) != ranks or len(set(devices)) != ranks:
        raise ValueError(f"--devices {','.join(map(str, devices))} is not allowed with --ranks {ranks}: name {ranks} "
                         "different devices, one for each rank.")
    return [Seat(rank, device) for rank, device in enumerate(devices)]


def seats_of_server(table: RankTable, index: Optional[int], name: str) -> List[Seat]:
    """The ranks of one server of a rank table.

    Args:
        table: all ranks of the job.
        index: number of the server in the table; None to find it by this host's addresses.
        name: what errors call the table.
    Raises:
        ValueError: there is no such server, or none of them is seen to be this host.
    """
    if index is None:
        index = 0 if len(table.servers) == 1 else _this_host(table.servers)
        if index is None:
            raise ValueError(f"{name} names {len(table.servers)} servers ({_names(table.servers)}), and none of them is "
                             "seen to be this host. Say which it is: --server-index K, counted from 0.")
    if index >= len(table.servers):
        raise ValueError(f"--server-index {index} is not allowed: {name} names {len(table.servers)} servers "
                         f"({_names(table.servers)}), which are numbers 0 to {len(table.servers) - 1}.")
    return [Seat(device.rank, device.device_id) for device in sorted(table.servers[index].devices, key=lambda d: d.rank)]


def _names(servers: Sequence[Server]) -> str:
    return ", ".join(server.server_id for server in servers)


def _this_host(servers: Sequence[Server]) -> Optional[int]:
    """The one server whose address is one of this host's."""
    found = [index for index, server in enumerate(servers) if is_this_host(server.address)]
    return found[0] if len(found) == 1 else None
