"""Assign ranks to this host: from a number of ranks, or from a rank table."""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.addresses import is_this_host
from npu_shim.distributed.ranktable.model import RankTable, Server
from npu_shim.launching.plan import RankSlot


def assign_local_ranks(ranks: int, devices: Sequence[int] | None) -> list[RankSlot]:
    """Return the slots of a job on this host alone.

    Args:
        ranks: number of ranks.
        devices: the device of each rank; 0, 1, ... when None.
    Raises:
        ValueError: the number of devices differs, or a device appears twice.
    """
    if devices is None:
        devices = range(ranks)
    if len(devices) != ranks or len(set(devices)) != ranks:
        raise ValueError(
            f"--devices {','.join(map(str, devices))} is not allowed with --ranks {ranks}. Name {ranks} different "
            "devices, one for each rank."
        )
    return [RankSlot(rank, device) for rank, device in enumerate(devices)]


def assign_server_ranks(table: RankTable, index: int | None, name: str, pod_name: str = "") -> list[RankSlot]:
    """Return the slots of one server, or pod, of a rank table.

    Args:
        table: all ranks of the job.
        index: number of the server in the table; None to find it by the pod name or by the addresses of this host.
        name: name of the table in errors.
        pod_name: name of this pod; used if the table names pods.
    Raises:
        ValueError: the server does not exist, or none of them is this host.
    """
    if index is None:
        index = 0 if len(table.servers) == 1 else _this_pod(table.servers, pod_name, name)
        if index is None:
            index = _this_host(table.servers)
        if index is None:
            raise ValueError(
                f"{name} has {len(table.servers)} servers ({_names(table.servers)}), and none of them is recognized as "
                "this host. Pass --server-index K, counted from 0."
            )
    if index >= len(table.servers):
        raise ValueError(
            f"--server-index {index} is not allowed: {name} has {len(table.servers)} servers "
            f"({_names(table.servers)}). Pass 0 to {len(table.servers) - 1}."
        )
    devices = sorted(table.servers[index].devices, key=lambda device: device.rank)
    return [RankSlot(device.rank, device.device_id) for device in devices]


def _names(servers: Sequence[Server]) -> str:
    return ", ".join(server.server_id for server in servers)


def _this_pod(servers: Sequence[Server], pod_name: str, name: str) -> int | None:
    """Return the index of the pod with this name; None if the pods or this pod have no name."""
    pods = [server.pod_name for server in servers]
    if not pod_name or not any(pods):
        return None
    if pod_name not in pods:
        raise ValueError(
            f"the pod {pod_name!r} is not in {name}, which has {', '.join(map(repr, filter(None, pods)))}. Export one "
            "of them as POD_NAME, or pass --server-index K."
        )
    return pods.index(pod_name)


def _this_host(servers: Sequence[Server]) -> int | None:
    """Return the index of the only server with an address of this host or pod; None if there is none or several."""
    for addresses in ([server.pod_address for server in servers], [server.address for server in servers]):
        indices = [index for index, address in enumerate(addresses) if address and is_this_host(address)]
        if len(indices) == 1:
            return indices[0]
    return None
