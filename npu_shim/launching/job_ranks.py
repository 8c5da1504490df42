"""The ranks that a command starts on this host, from a number of ranks, a list of hosts, or a rank table."""

from __future__ import annotations

import os
from typing import NamedTuple, Sequence

from npu_shim._host import host_device
from npu_shim.distributed.addresses import is_this_host
from npu_shim.distributed.ranktable import generate, reader, writer
from npu_shim.distributed.ranktable.generate import Host
from npu_shim.distributed.ranktable.model import RANK_LIST, RankTable, Server
from npu_shim.distributed.ranktable.products import dialect_of
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
    if ranks > 1 and host_device.detect_without_import().is_npu:
        return JobRanks(slots, ranks, os.path.join(log_dir, _TABLE_FILE), local_table_text(slots))
    return JobRanks(slots, ranks)


def ranks_in_table(table: RankTable, path: str, server_index: int | None, pod_name: str) -> JobRanks:
    """Return the ranks of this host in a rank table.

    Raises:
        ValueError: the server or pod does not exist, or none of them is this host.
    """
    pods = any(server.pod_name or server.pod_address for server in table.servers)
    if server_index is None and len(table.servers) > 1 and not pods and not host_device.detect_without_import().is_npu:
        return _ranks_over_mpi(table, path, None)
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
    if host_device.detect_without_import().is_npu:
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
    table, _ = generate.generate_server_list(hosts, {})
    return ranks_in_rehearsal(table, os.path.join(log_dir, _TABLE_FILE), writer.table_text(table))


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
    if host_device.detect_without_import().is_npu:
        names = ",".join(host.name for host in hosts)
        raise ValueError(
            f"NPUs on other hosts ({names}) need a rank table with the addresses of all devices. Create one with "
            "npu-shim ranktable make, and pass --ranktable FILE on each host."
        )
    if len(hosts) == 1:
        raise ValueError(f"host {hosts[0].name} is not this host. Run the command on {hosts[0].name}.")
    if server_index is not None:
        raise ValueError("--server-index is not allowed: mpirun starts the ranks of all hosts. Leave it out.")
    table, _ = generate.generate_server_list(hosts, {})
    return _ranks_over_mpi(table, os.path.join(log_dir, _TABLE_FILE), writer.table_text(table))


def _ranks_over_mpi(table: RankTable, path: str, text: str | None) -> JobRanks:
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
        index = 0 if len(table.servers) == 1 else _index_of_this_pod(table.servers, pod_name, name)
        if index is None:
            index = _index_of_this_host(table.servers)
        if index is None:
            raise ValueError(
                f"{name} has {len(table.servers)} servers ({_server_names_text(table.servers)}), and none of them is "
                "recognized as this host. Pass --server-index K, counted from 0."
            )
    if index >= len(table.servers):
        raise ValueError(
            f"--server-index {index} is not allowed: {name} has {len(table.servers)} servers "
            f"({_server_names_text(table.servers)}). Pass 0 to {len(table.servers) - 1}."
        )
    devices = sorted(table.servers[index].devices, key=lambda device: device.rank)
    return [RankSlot(device.rank, device.device_id) for device in devices]


def _server_names_text(servers: Sequence[Server]) -> str:
    return ", ".join(server.server_id for server in servers)


def _index_of_this_pod(servers: Sequence[Server], pod_name: str, name: str) -> int | None:
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


def _index_of_this_host(servers: Sequence[Server]) -> int | None:
    """Return the index of the only server with an address of this host or pod; None if there is none or several."""
    for addresses in ([server.pod_address for server in servers], [server.address for server in servers]):
        indices = [index for index, address in enumerate(addresses) if address and is_this_host(address)]
        if len(indices) == 1:
            return indices[0]
    return None


_THIS_HOST = "127.0.0.1"


def local_table_text(slots: Sequence[RankSlot]) -> str:
    """Return the text of a rank table, in the version of this host's NPUs, with the addresses that its files have.

    Args:
        slots: the ranks, in order, and their devices.
    Raises:
        ValueError: hccn.conf (hccl_rootinfo.json for an A5) does not exist, or lacks one of the devices.
    """
    dialect = dialect_of(host_device.card_product())
    source = generate.file_source(dialect)
    try:
        devices = source.parse(reader.read_table_text(source.path), source.path)
    except OSError as error:
        fix = "Write it with the tool of the platform" if dialect == RANK_LIST else "Set the addresses with hccn_tool"
        raise ValueError(
            f"{len(slots)} ranks on NPUs need a rank table, which cannot be generated from {source.path}: "
            f"{error.strerror}. {fix}, or pass --ranktable FILE instead of --ranks (npu-shim ranktable make creates "
            "one)."
        ) from error
    host = Host(_THIS_HOST, tuple(slot.device for slot in slots))
    table, _ = source.generate([host], {_THIS_HOST: devices})
    return writer.table_text(table)
