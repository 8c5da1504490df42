"""Which ranks this host has to start: from a number of ranks, or from a rank table."""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.addresses import is_this_host
from npu_shim.distributed.ranktable.model import RankTable, Server
from npu_shim.launching.plan import Seat


def seats_of_one_host(ranks: int, devices: Sequence[int] | None) -> list[Seat]:
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
        raise ValueError(
            f"--devices {','.join(map(str, devices))} is not allowed with --ranks {ranks}: name {ranks} "
            "different devices, one for each rank."
        )
    return [Seat(rank, device) for rank, device in enumerate(devices)]


def seats_of_server(table: RankTable, index: int | None, name: str, pod_name: str = "") -> list[Seat]:
    """The ranks of one server, or pod, of a rank table.

    Args:
        table: all ranks of the job.
        index: number of the server in the table; None to find it by the pod's name or this host's addresses.
        name: what errors call the table.
        pod_name: of the pod that this is, where the platform says so; counts where the table names pods.
    Raises:
        ValueError: there is no such server, or none of them is seen to be this host.
    """
    if index is None:
        index = 0 if len(table.servers) == 1 else _this_pod(table.servers, pod_name, name)
        if index is None:
            index = _this_host(table.servers)
        if index is None:
            raise ValueError(
                f"{name} names {len(table.servers)} servers ({_names(table.servers)}), and none of them is "
                "seen to be this host. Say which it is: --server-index K, counted from 0."
            )
    if index >= len(table.servers):
        raise ValueError(
            f"--server-index {index} is not allowed: {name} names {len(table.servers)} servers "
            f"({_names(table.servers)}), which are numbers 0 to {len(table.servers) - 1}."
        )
    return [
        Seat(device.rank, device.device_id) for device in sorted(table.servers[index].devices, key=lambda d: d.rank)
    ]


def _names(servers: Sequence[Server]) -> str:
    return ", ".join(server.server_id for server in servers)


def _this_pod(servers: Sequence[Server], pod_name: str, name: str) -> int | None:
    """The server that is the pod of this name; None where pods have no names, or none was said."""
    pods = [server.pod_name for server in servers]
    if not pod_name or not any(pods):
        return None
    if pod_name not in pods:
        raise ValueError(
            f"POD_NAME={pod_name!r} is none of the pods of {name}, which are "
            f"{', '.join(map(repr, filter(None, pods)))}. Export one of them, or say --server-index K."
        )
    return pods.index(pod_name)


def _this_host(servers: Sequence[Server]) -> int | None:
    """The one server whose address is one of this host's."""
    found = [index for index, server in enumerate(servers) if is_this_host(server.address)]
    return found[0] if len(found) == 1 else None
