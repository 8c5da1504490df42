"""What is wrong in a rank table, beyond what its form says: ranks, devices, addresses, and the rules of the cards."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from typing import Iterator

from npu_shim.distributed.ranktable import lenient_json as ranktable_json
from npu_shim.distributed.ranktable.dialects import Place, read_data
from npu_shim.distributed.ranktable.model import ERROR, POD, SERVER_LIST, WARNING, Problem, RankTable, counted

# Products by the rule for the devices of a server
ATLAS_910, ATLAS_A2, ATLAS_A3 = "910", "A2", "A3"
PRODUCTS = (ATLAS_910, ATLAS_A2, ATLAS_A3)
_VERSIONS = ("1.0", "1.2")
_COUNTS = (1, 2, 4, 8)
_HALF = 4  # devices 0-3 and 4-7 of a 910 server are two rings
_LONGEST_ID = 63


def examine(text: str, product: str | None = None) -> tuple[RankTable | None, tuple[Problem, ...]]:
    """Reads a rank table and finds all that is wrong with it.

    Args:
        text: of the file.
        product: whose rules for the devices of a server count; None where no cards will be used.
    Returns:
        (table, problems): the table is None where the text does not make one, apart from comments and stray commas.
        Problems are 'error' where no runtime gets along, 'warning' where only cards may not.
    """
    data, form = ranktable_json.load(text)
    if data is None and form:
        return None, form
    reading = read_data(data)
    found = list(reading.problems)
    if reading.table is not None:
        found += list(_ranks(reading.places)) + list(_devices(reading.places)) + list(_addresses(reading.places))
        found += list(_servers(reading.table)) + list(_super_pods(reading.table))
        if product is not None:
            found += list(_topology(reading.table, product))
    usable = not any(problem.severity == ERROR for problem in found)
    return reading.table if usable else None, (*form, *found)


def _ranks(places: list[Place]) -> Iterator[Problem]:
    """Ranks are 0 to N-1, each once."""
    last = len(places) - 1
    every = f"{len(places)} devices have ranks 0 to {last}, each once" if last else "The rank of one device is 0"
    first: dict[int, str] = {}
    for place in places:
        rank = place.device.rank
        if rank in first:
            missing = min(set(range(len(places))) - {p.device.rank for p in places})
            yield Problem(
                place.rank_path,
                f"rank {rank} is given twice, first at {first[rank]}",
                f"{every}; rank {missing} is not there yet",
            )
        first.setdefault(rank, place.rank_path)
    beyond = [place for place in places if place.device.rank > last]
    if beyond and len(first) == len(places):
        missing = min(set(range(len(places))) - set(first))
        yield Problem(
            beyond[0].rank_path,
            f"is rank {beyond[0].device.rank}, but there is no rank {missing}",
            f"{every}; number them without a gap",
        )


def _devices(places: list[Place]) -> Iterator[Problem]:
    """A device of a server has one rank."""
    first: dict[tuple[str, int], str] = {}
    for place in places:
        key = (place.server_id, place.device.device_id)
        if key in first:
            yield Problem(
                f"{place.path}.device_id",
                f"device {place.device.device_id} of server {place.server_id!r} is given twice, first at "
                f"{first[key]}.device_id",
                "A device trains one rank; name another device",
            )
        first.setdefault(key, place.path)


def _addresses(places: list[Place]) -> Iterator[Problem]:
    """Each device has a network port of its own."""
    first: dict[str, str] = {}
    for place in places:
        address, path = place.device.device_ip, f"{place.path}.device_ip"
        if address is None:
            yield Problem(
                place.path, "has no device_ip", "Cards need it: address_N in /etc/hccn.conf of the server", WARNING
            )
            continue
        if address in first:
            yield Problem(
                path,
                f"{address!r} is given twice, first at {first[address]}",
                "Each device has a port of its own: address_N in /etc/hccn.conf of the server",
                WARNING,
            )
        elif not _is_address(address):
            yield Problem(
                path,
                f"{address!r} is no IPv4 or IPv6 address",
                "Write the address of the device's port: address_N in /etc/hccn.conf of the server",
                WARNING,
            )
        first.setdefault(address, path)


def _servers(table: RankTable) -> Iterator[Problem]:
    """Names of servers and pods."""
    names: dict[str, int] = {}
    for at, server in enumerate(table.servers):
        if table.dialect == SERVER_LIST and server.server_id in names:
            yield Problem(
                f"$.server_list[{at}].server_id",
                f"{server.server_id!r} is given twice, first at $.server_list[{names[server.server_id]}].server_id",
                "List all devices of a server in one entry, or give each server a name of its own",
            )
        if len(server.server_id) > _LONGEST_ID:
            yield Problem(
                _server_path(table, at),
                f"the server_id has {len(server.server_id)} characters",
                f"Shorten it to {_LONGEST_ID}",
                WARNING,
            )
        names.setdefault(server.server_id, at)
    if table.dialect == SERVER_LIST and table.version not in (None, *_VERSIONS):
        yield Problem("$.version", f"is {table.version!r}", f"It is one of {', '.join(map(repr, _VERSIONS))}", WARNING)
    pods: dict[str, int] = {}
    for at, server in enumerate(table.servers):
        if server.pod_name is not None and server.pod_name in pods:
            path = "$.group_list[0].instance_list[{}].pod_name".format
            yield Problem(
                path(at),
                f"{server.pod_name!r} is given twice, first at {path(pods[server.pod_name])}",
                "A process knows its place by the name of its pod; give each a name of its own",
            )
        pods.setdefault(server.pod_name or "", at)


def _super_pods(table: RankTable) -> Iterator[Problem]:
    """Each server is in one super-pod."""
    if not table.super_pods:
        if table.version == "1.2":
            yield Problem(
                "$",
                "has no super_pod_list, which version 1.2 is made for",
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
                yield Problem(path, f"{server_id!r} is no server of server_list", f"The servers are {', '.join(known)}")
            elif server_id in first:
                yield Problem(
                    path, f"{server_id!r} is given twice, first at {first[server_id]}", "A server is in one super-pod"
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
    """Which devices of servers can train together."""
    devices: dict[str, list[int]] = defaultdict(list)
    paths: dict[str, str] = {}
    for at, server in enumerate(table.servers):
        devices[server.server_id] += [device.device_id for device in server.devices]
        paths.setdefault(server.server_id, _devices_path(table, at))
    counts = {server_id: len(ids) for server_id, ids in devices.items()}
    for server_id, ids in devices.items():
        where, many = paths[server_id], f"server {server_id!r} has {counted(len(ids), 'device')}"
        named = ", ".join(str(i) for i in sorted(ids))
        if product == ATLAS_910 and len(ids) not in _COUNTS:
            yield Problem(
                where, f"{many} ({named})", "Atlas training servers (910) train on 1, 2, 4 or 8 of them", WARNING
            )
        elif product == ATLAS_910 and len(ids) in (2, 4) and len({i < _HALF for i in ids}) == 2:
            yield Problem(
                where,
                f"devices {named} of server {server_id!r} are of both rings",
                f"Devices 0-3 and 4-7 are a ring each on Atlas training servers (910): take {len(ids)} of one",
                WARNING,
            )
        elif product in (ATLAS_910, ATLAS_A2) and max(ids) > 7:
            yield Problem(
                where, f"server {server_id!r} has a device {max(ids)}", "A server's devices are 0 to 7", WARNING
            )
    first = next(iter(counts))
    for server_id, count in counts.items():
        if product == ATLAS_910 and count != counts[first]:
            yield Problem(
                paths[server_id],
                f"server {server_id!r} has {counted(count, 'device')}, and {first!r} {counts[first]}",
                "All servers of a job give the same number",
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
                f"super-pod {names[at]} has {counted(total, 'device')}, and {names[0]} {sums[0]}",
                "All super-pods of a job give the same number",
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
