"""The ranks that a command starts on this host, from a number of ranks, a list of hosts, or a rank table."""

from __future__ import annotations

import os
from typing import NamedTuple, Sequence

from npu_shim._host import host_device
from npu_shim.distributed.addresses import is_this_host
from npu_shim.distributed.ranktable import writer
from npu_shim.distributed.ranktable.generate import Host, generate
from npu_shim.distributed.ranktable.model import RankTable
from npu_shim.launching.assignment import assign_local_ranks, assign_server_ranks
from npu_shim.launching.local_table import local_table_text
from npu_shim.launching.plan import RankSlot

_TABLE_FILE = "rank_table.json"


class JobRanks(NamedTuple):
    """The ranks of this host.

    Attributes:
        slots: their ranks and devices.
        world_size: number of ranks on all hosts.
        table: path of the rank table.
        text: its text, if the command must write it.
        hosts: the hosts on which mpirun starts the ranks; empty if this command starts its own.
    """

    slots: list[RankSlot]
    world_size: int
    table: str | None = None
    text: str | None = None
    hosts: tuple[Host, ...] = ()


def ranks_here(ranks: int, devices: Sequence[int] | None, log_dir: str) -> JobRanks:
    """Return the ranks of a job on this host alone; NPUs get a rank table.

    Args:
        ranks: number of ranks.
        devices: the device of each rank; 0, 1, ... if None.
        log_dir: the folder for the rank table.
    Raises:
        ValueError: the number of devices differs, a device appears twice, or the addresses of the NPUs are unknown.
    """
    slots = assign_local_ranks(ranks, devices)
    if ranks > 1 and host_device.look().is_npu:
        return JobRanks(slots, ranks, os.path.join(log_dir, _TABLE_FILE), local_table_text(slots))
    return JobRanks(slots, ranks)


def ranks_in_table(table: RankTable, path: str, server_index: int | None, pod_name: str) -> JobRanks:
    """Return the ranks of this host in a rank table.

    Raises:
        ValueError: the server or pod does not exist, or none of them is this host.
    """
    pods = any(server.pod_name or server.pod_address for server in table.servers)
    if server_index is None and len(table.servers) > 1 and not pods and not host_device.look().is_npu:
        return _over_mpi(table, path, None)
    return JobRanks(assign_server_ranks(table, server_index, path, pod_name), table.size, path)


def ranks_in_rehearsal(table: RankTable, path: str, text: str | None = None) -> JobRanks:
    """Return the ranks of all servers of a rank table, for a rehearsal on this host.

    Args:
        table: all ranks of the job.
        path: of the rank table.
        text: its text, if the command must write it.
    Raises:
        ValueError: this host has NPUs.
    """
    if host_device.look().is_npu:
        raise ValueError("--rehearse needs a host without NPUs: servers cannot share them. Run it on another host.")
    slots = [
        RankSlot(device.rank, device.device_id, index)
        for index, server in enumerate(table.servers)
        for device in server.devices
    ]
    return JobRanks(sorted(slots, key=lambda slot: slot.rank), table.size, path, text)


def ranks_of_hosts_in_rehearsal(hosts: Sequence[Host], log_dir: str) -> JobRanks:
    """Return the ranks of all hosts, for a rehearsal on this one.

    Args:
        hosts: with their devices, in the order of their ranks.
        log_dir: the folder for the rank table.
    Raises:
        ValueError: see ranks_in_rehearsal().
    """
    table, _ = generate(hosts, {})
    return ranks_in_rehearsal(table, os.path.join(log_dir, _TABLE_FILE), writer.render(table))


def ranks_of_hosts(hosts: Sequence[Host], server_index: int | None, log_dir: str) -> JobRanks:
    """Return the ranks of a job on the devices of several hosts, which mpirun starts.

    Args:
        hosts: with their devices, in the order of their ranks.
        server_index: 0 if the only host is this one, whatever its name.
        log_dir: the folder for the rank table.
    Raises:
        ValueError: the only host is not this one, or the NPUs of other hosts have no known addresses.
    """
    if len(hosts) == 1 and (server_index == 0 or is_this_host(hosts[0].name)):
        devices = hosts[0].devices or ()
        return ranks_here(len(devices), devices, log_dir)
    if host_device.look().is_npu:
        names = ",".join(host.name for host in hosts)
        raise ValueError(
            f"NPUs on other hosts ({names}) need a rank table with the addresses of all devices. Create one with "
            "npu-shim ranktable make, and pass --ranktable FILE on each host."
        )
    if len(hosts) == 1:
        raise ValueError(f"host {hosts[0].name} is not this host. Run the command on {hosts[0].name}.")
    if server_index is not None:
        raise ValueError("--server-index is not allowed: mpirun starts the ranks of all hosts. Leave it out.")
    table, _ = generate(hosts, {})
    return _over_mpi(table, os.path.join(log_dir, _TABLE_FILE), writer.render(table))


def _over_mpi(table: RankTable, path: str, text: str | None) -> JobRanks:
    """Return all ranks of a table, for mpirun."""
    devices = [device for server in table.servers for device in server.devices]
    hosts = tuple(
        Host(server.address or server.server_id, tuple(device.device_id for device in server.devices))
        for server in table.servers
    )
    if [device.rank for device in devices] != list(range(table.size)):
        raise ValueError(
            f"{path} does not number its ranks host by host, as mpirun starts them. Create a table with npu-shim "
            "ranktable make."
        )
    return JobRanks([RankSlot(device.rank, device.device_id) for device in devices], table.size, path, text, hosts)
