"""Read the dialect ``rank_list``: version 2.0, the rank tables of the Ascend 950.

The format is that of HCCL's public parser and of the public Kubernetes operator. It lists ranks, not servers: a
server is here the instance of the innermost net layer. Two servers that share an instance number their devices alike,
so the second occurrence of a device belongs to the second server. HCCL refuses strings where the format has integers.
"""

from __future__ import annotations

import collections
from typing import Iterable

from npu_shim.distributed.ranktable import fields, model

_RANK = ("rank_id", "device_id", "local_id", "level_list")
_LAYER = ("net_layer", "net_instance_id", "net_type", "rank_addr_list")
_ADDRESS = ("addr_type", "addr", "ports")


def read_rank_list(data: fields.JsonObject, reading: fields.Reading, common: fields.JsonObject) -> model.RankTable:
    """Read the ranks of a table.

    Args:
        data: the object of the file.
        reading: receives problems and the paths of the devices.
        common: fields of the table that all dialects have.
    Raises:
        fields.Incomplete: a problem was reported that leaves no table.
    """
    entries = fields.objects_in_list(data, "rank_list", "$", reading)
    fields.check_declared_count(
        data, "rank_count", len(entries), "$", "rank_list", reading, is_required=True, is_quoted=False
    )
    _check_integer_type(data, "rank_count", "$", reading)
    if common["version"] is None:
        reading.report("$", "has no version", f'Write "version": "{model.RANKS}"', model.WARNING)
    _check_string_type(data, "version", "$", reading)
    devices = [(path, read_device(entry, path, reading)) for path, entry in entries]
    servers = group_by_server(device for _, device in devices)
    names = {id(device): server.server_id for server in servers for device in server.devices}
    for path, device in devices:
        instance_path = f"{path}.level_list[0].net_instance_id"
        fields.add_device_paths(reading, names[id(device)], instance_path, [(device, path, f"{path}.rank_id")])
    return model.RankTable(servers, model.RANK_LIST, **common)


def read_device(entry: fields.JsonObject, path: str, reading: fields.Reading, rank: int | None = None) -> model.Device:
    """Read a device and its net layers.

    Args:
        entry: its object.
        path: the JSON path of the object.
        reading: receives problems.
        rank: its rank, if the object has none.
    Raises:
        fields.Incomplete: a problem was reported that leaves no device.
    """
    return model.Device(
        rank=_read_integer(entry, "rank_id", path, reading) if rank is None else rank,
        device_id=_read_integer(entry, "device_id", path, reading),
        extras=fields.unknown_keys(entry, _RANK),
        local_id=_read_integer(entry, "local_id", path, reading),
        layers=tuple(
            _read_layer(one, at, reading) for at, one in fields.objects_in_list(entry, "level_list", path, reading)
        ),
    )


def _read_layer(entry: fields.JsonObject, path: str, reading: fields.Reading) -> model.NetLayer:
    addresses = fields.objects_in_list(entry, "rank_addr_list", path, reading, may_be_empty=True)
    return model.NetLayer(
        number=_read_integer(entry, "net_layer", path, reading),
        instance=_read_string(entry, "net_instance_id", path, reading),
        net_type=fields.read_optional_text(entry, "net_type", path, reading),
        addresses=tuple(_read_address(one, where, reading) for where, one in addresses),
        extras=fields.unknown_keys(entry, _LAYER),
    )


def _read_address(entry: fields.JsonObject, path: str, reading: fields.Reading) -> model.NetAddress:
    ports = fields.required_value(entry, "ports", path, reading)
    if not isinstance(ports, list) or not all(isinstance(port, str) for port in ports):
        reading.report(
            f"{path}.ports", f"is {fields.json_value_text(ports)}", 'Write a list of strings: ["0/4", "0/5"]'
        )
        raise fields.Incomplete
    return model.NetAddress(
        kind=_read_string(entry, "addr_type", path, reading),
        address=_read_string(entry, "addr", path, reading),
        ports=tuple(ports),
        extras=fields.unknown_keys(entry, _ADDRESS),
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


def _read_integer(entry: fields.JsonObject, key: str, path: str, reading: fields.Reading) -> int:
    number = fields.read_number_field(entry, key, path, reading)
    _check_integer_type(entry, key, path, reading)
    return number


def _read_string(entry: fields.JsonObject, key: str, path: str, reading: fields.Reading) -> str:
    text = fields.read_text_field(entry, key, path, reading)
    _check_string_type(entry, key, path, reading)
    return text


def _check_integer_type(entry: fields.JsonObject, key: str, path: str, reading: fields.Reading) -> None:
    if isinstance(entry.get(key), str):
        reading.report(f"{path}.{key}", f"is the string {entry[key]!r}", "Write a number without quotes", model.WARNING)


def _check_string_type(entry: fields.JsonObject, key: str, path: str, reading: fields.Reading) -> None:
    if isinstance(entry.get(key), int):
        reading.report(f"{path}.{key}", f"is the number {entry[key]}", f'Write "{entry[key]}" in quotes', model.WARNING)
