"""Checks of a rank table: ranks, devices, addresses and servers."""

from __future__ import annotations

import ipaddress
from typing import Iterator

from npu_shim.distributed.ranktable import model
from npu_shim.distributed.ranktable.fields import DevicePath, Reading, repeated_key_paths
from npu_shim.distributed.ranktable.model import RANK_LIST, SERVER_LIST, SUPER_PODS, Problem, RankTable, warning_problem
from npu_shim.distributed.ranktable.net_layers import net_layer_problems
from npu_shim.distributed.ranktable.products import product_problems, server_path

_MAX_ID_LENGTH = 63


def table_problems(reading: Reading, product: str | None = None) -> Iterator[Problem]:
    """Yield the problems of a rank table that its JSON form does not show.

    Args:
        reading: the table and the paths of its devices.
        product: one of PRODUCTS, whose rules apply, or BY_VERSION; None for the CPU.
    """
    if reading.table is None:
        return
    yield from _rank_problems(reading.devices)
    yield from _device_problems(reading.devices)
    yield from (
        net_layer_problems(reading.devices)
        if reading.table.dialect == RANK_LIST
        else _address_problems(reading.devices)
    )
    yield from _server_problems(reading.table)
    yield from _super_pod_problems(reading.table)
    if product is not None:
        yield from product_problems(reading.table, product)


def _rank_problems(devices: list[DevicePath]) -> Iterator[Problem]:
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
        yield Problem(beyond[0].rank_path, f"is rank {beyond[0].device.rank}, but no device has rank {missing}", every)


def _device_problems(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that each device has one rank."""
    by_path = {f"{one.path}.device_id": one for one in devices}
    for path, first in repeated_key_paths(
        ((one.server_id, one.device.device_id), path) for path, one in by_path.items()
    ):
        named = f"device {by_path[path].device.device_id} of server {by_path[path].server_id!r}"
        advice = "Name another device; each device runs one rank"
        yield Problem(path, f"{named} is given twice, first at {first}", advice)


def _address_problems(devices: list[DevicePath]) -> Iterator[Problem]:
    """Check that each device has its own network address."""
    first: dict[str, str] = {}
    for one in devices:
        address, path = one.device.device_ip, f"{one.path}.device_ip"
        if address is None:
            yield warning_problem(
                one.path, "has no device_ip", "NPUs need it. Copy address_N from /etc/hccn.conf of the server"
            )
            continue
        if address in first:
            yield warning_problem(
                path,
                f"{address!r} is given twice, first at {first[address]}",
                "Copy the address of each device from address_N in /etc/hccn.conf of the server",
            )
        elif not _is_address(address):
            yield warning_problem(
                path,
                f"{address!r} is not an IPv4 or IPv6 address",
                "Copy it from address_N in /etc/hccn.conf of the server",
            )
        first.setdefault(address, path)


def _server_problems(table: RankTable) -> Iterator[Problem]:
    """Check the names of servers and pods, and the version."""
    names: dict[str, int] = {}
    for at, server in enumerate(table.servers):
        if table.dialect == SERVER_LIST and server.server_id in names:
            yield Problem(
                f"$.server_list[{at}].server_id",
                f"{server.server_id!r} is given twice, first at $.server_list[{names[server.server_id]}].server_id",
                "List all devices of a server in one entry, or rename a server",
            )
        if len(server.server_id) > _MAX_ID_LENGTH and table.dialect != RANK_LIST:
            yield warning_problem(
                server_path(table, at),
                f"the server_id has {len(server.server_id)} characters",
                f"Shorten it to {_MAX_ID_LENGTH}",
            )
        names.setdefault(server.server_id, at)
    versions = model.VERSIONS.get(table.dialect, ())
    if versions and table.version not in (None, *versions):
        yield warning_problem(
            "$.version",
            f"is {table.version!r}, but there is a {table.dialect}",
            f"Write {' or '.join(map(repr, versions))}",
        )
    pods = {f"$.group_list[0].instance_list[{at}].pod_name": one.pod_name for at, one in enumerate(table.servers)}
    for path, first in repeated_key_paths((name, path) for path, name in pods.items() if name is not None):
        advice = "Give each pod its own name; it identifies the processes of the pod"
        yield Problem(path, f"{pods[path]!r} is given twice, first at {first}", advice)


def _super_pod_problems(table: RankTable) -> Iterator[Problem]:
    """Check that each server is in one super-pod."""
    if not table.super_pods:
        if table.version == SUPER_PODS and table.dialect == SERVER_LIST:
            yield warning_problem(
                "$", "has no super_pod_list, which version 1.2 needs", 'Add it, or write "version": "1.0"'
            )
        return
    if table.version != SUPER_PODS:
        yield warning_problem(
            "$.version", f"is {table.version!r}, but there is a super_pod_list", 'Write "version": "1.2"'
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


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
