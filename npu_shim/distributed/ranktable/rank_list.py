"""Read the dialect ``rank_list``: version 2.0, the rank tables of the Ascend 950.

The format is that of HCCL's public parser and of the public Kubernetes operator. It lists ranks, not servers: a
server is here the instance of the innermost net layer. Two servers that share an instance number their devices alike,
so the second occurrence of a device belongs to the second server. HCCL refuses strings where the format has integers.
"""

from __future__ import annotations

import collections
from dataclasses import replace
from typing import Iterable

from npu_shim.distributed.ranktable import model
from npu_shim.distributed.ranktable.fields import Entry, Incomplete, json_value_text

_RANK = ("rank_id", "device_id", "local_id", "level_list")
_LAYER = ("net_layer", "net_instance_id", "net_type", "rank_addr_list")
_ADDRESS = ("addr_type", "addr", "ports")


def read_rank_list(top: Entry, empty: model.RankTable) -> model.RankTable:
    """Read the ranks of a table.

    Args:
        top: the object of the file.
        empty: the table without its ranks.
    Raises:
        Incomplete: a problem was reported that leaves no table.
    """
    entries = top.objects("rank_list")
    top.check_count("rank_count", len(entries), "rank_list", is_required=True, is_quoted=False)
    _check_integer_type(top, "rank_count")
    if empty.version is None:
        top.report("", "has no version", f'Write "version": "{model.RANKS}"', model.WARNING)
    _check_string_type(top, "version")
    devices = list(map(read_device, entries))
    servers = group_by_server(devices)
    names = {id(device): server.server_id for server in servers for device in server.devices}
    for entry, device in zip(entries, devices):
        entry.add_device(names[id(device)], device, f"{entry.path}.rank_id")
    return replace(empty, servers=servers, dialect=model.RANK_LIST)


def read_device(entry: Entry, rank: int | None = None) -> model.Device:
    """Read a device and its net layers.

    Args:
        entry: its object.
        rank: its rank, if the object has none.
    Raises:
        Incomplete: a problem was reported that leaves no device.
    """
    return model.Device(
        rank=_read_integer(entry, "rank_id") if rank is None else rank,
        device_id=_read_integer(entry, "device_id"),
        extras=entry.unknown_keys(_RANK),
        local_id=_read_integer(entry, "local_id"),
        layers=tuple(map(_read_layer, entry.objects("level_list"))),
    )


def _read_layer(entry: Entry) -> model.NetLayer:
    addresses = entry.objects("rank_addr_list", may_be_empty=True)
    return model.NetLayer(
        number=_read_integer(entry, "net_layer"),
        instance=_read_string(entry, "net_instance_id"),
        net_type=entry.optional_text("net_type"),
        addresses=tuple(map(_read_address, addresses)),
        extras=entry.unknown_keys(_LAYER),
    )


def _read_address(entry: Entry) -> model.NetAddress:
    ports = entry.required("ports")
    if not isinstance(ports, list) or not all(isinstance(port, str) for port in ports):
        entry.report("ports", f"is {json_value_text(ports)}", 'Write a list of strings: ["0/4", "0/5"]')
        raise Incomplete
    return model.NetAddress(
        kind=_read_string(entry, "addr_type"),
        address=_read_string(entry, "addr"),
        ports=tuple(ports),
        extras=entry.unknown_keys(_ADDRESS),
    )


def group_by_server(devices: Iterable[model.Device]) -> tuple[model.Server, ...]:
    """Return the devices of each server, by rank; a server is an instance of the innermost layer."""
    devices_by_server: dict[str, list[model.Device]] = {}
    occurrences: collections.Counter[tuple[str, int]] = collections.Counter()
    for device in sorted(devices, key=lambda device: device.rank):
        instance = device.layers[0].instance
        occurrences[instance, device.device_id] += 1
        which = occurrences[instance, device.device_id]
        devices_by_server.setdefault(instance if which == 1 else f"{instance}#{which}", []).append(device)
    return tuple(model.Server(name, tuple(members)) for name, members in devices_by_server.items())


def _read_integer(entry: Entry, key: str) -> int:
    number = entry.number(key)
    _check_integer_type(entry, key)
    return number


def _read_string(entry: Entry, key: str) -> str:
    text = entry.text(key)
    _check_string_type(entry, key)
    return text


def _check_integer_type(entry: Entry, key: str) -> None:
    value = entry.content.get(key)
    if isinstance(value, str):
        entry.report(key, f"is the string {value!r}", "Write a number without quotes", model.WARNING)


def _check_string_type(entry: Entry, key: str) -> None:
    value = entry.content.get(key)
    if isinstance(value, int):
        entry.report(key, f"is the number {value}", f'Write "{value}" in quotes', model.WARNING)
