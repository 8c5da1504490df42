"""Checks of a rank table: ranks, devices, addresses, servers, and the device rules of each product."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from typing import Iterator

from npu_shim.distributed.ranktable.dialects import DevicePath, Reading
from npu_shim.distributed.ranktable.model import POD, SERVER_LIST, WARNING, Problem, RankTable, counted

# Products, by their rules for the devices of a server
ATLAS_910, ATLAS_A2, ATLAS_A3 = "910", "A2", "A3"
PRODUCTS = (ATLAS_910, ATLAS_A2, ATLAS_A3)
_VERSIONS = ("1.0", "1.2")
_ALLOWED_COUNTS = (1, 2, 4, 8)
_RING_SIZE = 4  # devices 0-3 and 4-7 of a 910 server are two rings
_MAX_ID_LENGTH = 63


def validate(reading: Reading, product: str | None = None) -> Iterator[Problem]:
    """Yield the problems of a rank table that its JSON form does not show.

    Args:
        reading: the table and the paths of its devices.
        product: one of PRODUCTS, whose rules for the devices of a server apply; None for the CPU.
    """
    if reading.table is None:
        return
    yield from _ranks(reading.devices)
    yield from _devices(reading.devices)
    yield from _addresses(reading.devices)
    yield from _servers(reading.table)
    yield from _super_pods(reading.table)
    if product is not None:
        yield from _topology(reading.table, product)


def _ranks(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that the ranks are 0 to N-1, each once."""
    last = len(devices) - 1
    every = f"Use each rank from 0 to {last} once" if last else "Use rank 0"
    first: dict[int, str] = {}
    for one in devices:
        rank = one.device.rank
        if rank in first:
            missing = min(set(range(len(devices))) - {other.device.rank for other in devices})
            yield Problem(
                one.rank_path,
                f"rank {rank} is given twice, first at {first[rank]}",
                f"{every}; rank {missing} is missing",
            )
        first.setdefault(rank, one.rank_path)
    beyond = [one for one in devices if one.device.rank > last]
    if beyond and len(first) == len(devices):
        missing = min(set(range(len(devices))) - set(first))
        yield Problem(
            beyond[0].rank_path,
            f"is rank {beyond[0].device.rank}, but no device has rank {missing}",
            every,
        )


def _devices(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that each device has one rank."""
    first: dict[tuple[str, int], str] = {}
    for one in devices:
        key = (one.server_id, one.device.device_id)
        if key in first:
            yield Problem(
                f"{one.path}.device_id",
                f"device {one.device.device_id} of server {one.server_id!r} is given twice, first at "
                f"{first[key]}.device_id",
                "Name another device; each device runs one rank",
            )
        first.setdefault(key, one.path)


def _addresses(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that each device has its own network address."""
    first: dict[str, str] = {}
    for one in devices:
        address, path = one.device.device_ip, f"{one.path}.device_ip"
        if address is None:
            yield Problem(
                one.path, "has no device_ip", "NPUs need it. Copy address_N from /etc/hccn.conf of the server", WARNING
            )
            continue
        if address in first:
            yield Problem(
                path,
                f"{address!r} is given twice, first at {first[address]}",
                "Copy the address of each device from address_N in /etc/hccn.conf of the server",
                WARNING,
            )
        elif not _is_address(address):
            yield Problem(
                path,
                f"{address!r} is not an IPv4 or IPv6 address",
                "Copy it from address_N in /etc/hccn.conf of the server",
                WARNING,
            )
        first.setdefault(address, path)


def _servers(table: RankTable) -> Iterator[Problem]:
    """Check the names of servers and pods, and the version."""
    names: dict[str, int] = {}
    for at, server in enumerate(table.servers):
        if table.dialect == SERVER_LIST and server.server_id in names:
            yield Problem(
                f"$.server_list[{at}].server_id",
                f"{server.server_id!r} is given twice, first at $.server_list[{names[server.server_id]}].server_id",
                "List all devices of a server in one entry, or rename a server",
            )
        if len(server.server_id) > _MAX_ID_LENGTH:
            yield Problem(
                _server_path(table, at),
                f"the server_id has {len(server.server_id)} characters",
                f"Shorten it to {_MAX_ID_LENGTH}",
                WARNING,
            )
        names.setdefault(server.server_id, at)
    if table.dialect == SERVER_LIST and table.version not in (None, *_VERSIONS):
        yield Problem("$.version", f"is {table.version!r}", f"Write one of {', '.join(map(repr, _VERSIONS))}", WARNING)
    pods: dict[str, int] = {}
    for at, server in enumerate(table.servers):
        if server.pod_name is not None and server.pod_name in pods:
            path = "$.group_list[0].instance_list[{}].pod_name".format
            yield Problem(
                path(at),
                f"{server.pod_name!r} is given twice, first at {path(pods[server.pod_name])}",
                "Give each pod its own name; it identifies the processes of the pod",
            )
        pods.setdefault(server.pod_name or "", at)


def _super_pods(table: RankTable) -> Iterator[Problem]:
    """Check that each server is in one super-pod."""
    if not table.super_pods:
        if table.version == "1.2":
            yield Problem(
                "$",
                "has no super_pod_list, which version 1.2 needs",
                'Add it, or write "version": "1.0"',
                WARNING,
            )
        return
    if table.version != "1.2":
        yield Problem(
            "$.version", f"is {table.version!r}, but there is a super_pod_list", 'Write "version": "1.2"', WARNING
        )
    known = [server.server_id for server in table.servers]
    first: dict[str, str] = {}
    for at, pod in enumerate(table.super_pods):
        for which, server_id in enumerate(pod.server_ids):
            path = f"$.super_pod_list[{at}].server_list[{which}].server_id"
            if server_id not in known:
                yield Problem(path, f"{server_id!r} is not in server_list", f"Use one of {', '.join(known)}")
            elif server_id in first:
                yield Problem(
                    path, f"{server_id!r} is given twice, first at {first[server_id]}", "Keep it in one super-pod"
                )
            first.setdefault(server_id, path)
    for at, server_id in enumerate(known):
        if server_id not in first:
            yield Problem(
                f"$.server_list[{at}].server_id",
                f"{server_id!r} is in no super-pod",
                "Add it to an entry of super_pod_list",
            )


def _topology(table: RankTable, product: str) -> Iterator[Problem]:
    """Check that the devices of each server can train together."""
    devices: dict[str, list[int]] = defaultdict(list)
    paths: dict[str, str] = {}
    for at, server in enumerate(table.servers):
        devices[server.server_id] += [device.device_id for device in server.devices]
        paths.setdefault(server.server_id, _devices_path(table, at))
    counts = {server_id: len(ids) for server_id, ids in devices.items()}
    for server_id, ids in devices.items():
        where, many = paths[server_id], f"server {server_id!r} has {counted(len(ids), 'device')}"
        named = ", ".join(str(i) for i in sorted(ids))
        if product == ATLAS_910 and len(ids) not in _ALLOWED_COUNTS:
            yield Problem(where, f"{many} ({named})", "Atlas training servers (910) use 1, 2, 4 or 8 devices", WARNING)
        elif product == ATLAS_910 and len(ids) in (2, 4) and len({i < _RING_SIZE for i in ids}) == 2:
            yield Problem(
                where,
                f"devices {named} of server {server_id!r} are in both rings",
                f"Use {len(ids)} devices of one ring; Atlas training servers (910) have the rings 0-3 and 4-7",
                WARNING,
            )
        elif product in (ATLAS_910, ATLAS_A2) and max(ids) > 7:
            yield Problem(where, f"server {server_id!r} has device {max(ids)}", "Use devices 0 to 7", WARNING)
    first = next(iter(counts))
    for server_id, count in counts.items():
        if product == ATLAS_910 and count != counts[first]:
            yield Problem(
                paths[server_id],
                f"server {server_id!r} has {counted(count, 'device')}, but {first!r} has {counts[first]}",
                "Use the same number on every server",
                WARNING,
            )
    if product == ATLAS_A3:
        yield from _equal_super_pods(table, counts)


def _equal_super_pods(table: RankTable, counts: dict[str, int]) -> Iterator[Problem]:
    sums = [sum(counts.get(server_id, 0) for server_id in pod.server_ids) for pod in table.super_pods]
    names = [repr(pod.super_pod_id) for pod in table.super_pods]
    for at, total in enumerate(sums):
        if total != sums[0]:
            yield Problem(
                f"$.super_pod_list[{at}]",
                f"super-pod {names[at]} has {counted(total, 'device')}, but {names[0]} has {sums[0]}",
                "Use the same number in every super-pod",
                WARNING,
            )


def _server_path(table: RankTable, at: int) -> str:
    return (
        f"$.server_list[{at}]"
        if table.dialect == SERVER_LIST
        else "$.group_list[0].instance_list" + (f"[{at}]" if table.dialect == POD else "")
    )


def _devices_path(table: RankTable, at: int) -> str:
    path = _server_path(table, at)
    return f"{path}.device" if table.dialect == SERVER_LIST else f"{path}.devices" if table.dialect == POD else path


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
