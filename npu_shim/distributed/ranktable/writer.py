"""Write a rank table, in its own dialect or another one."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Dict, Sequence

from npu_shim.distributed.ranktable.model import DIALECTS, LAB, POD, SERVER_LIST, Device, Extras, RankTable, Server

JsonObject = Dict[str, Any]
# The keys that readers of the dialect lab expect besides the ranks
_LAB_KEYS = {"board_id": "0x0000", "chip_info": "910", "deploy_mode": "lab", "para_plane_nic_location": "device"}
_POD_GROUP = "worker"
_LINE_LENGTH = 120
# Keys that belong to the structure of a dialect; every dialect has their information
_STRUCTURE_KEYS = (
    "version",
    "server_count",
    "server_list",
    "device",
    "devices",
    "group_count",
    "group_list",
    "device_num",
    "server_num",
    "device_count",
    "instance_count",
    "instance_list",
    "rank_id",
)


def render(table: RankTable) -> str:
    """Return the text of a file in the dialect of the table. Numbers are strings, as in all known files.

    Raises:
        ValueError: the dialect cannot represent the ranks.
    """
    return _render(to_json(table), "") + "\n"


def write(text: str, path: str) -> None:
    """Write the whole file or nothing.

    Raises:
        OSError: the file cannot be written.
    """
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise


def to_json(table: RankTable) -> JsonObject:
    """Return the JSON value of a table in its dialect.

    Raises:
        ValueError: the dialect is ``pod``, and the ranks do not follow the order of the file.
    """
    made: JsonObject = {} if table.version is None else {"version": table.version}
    made["status"] = table.status
    if table.dialect == SERVER_LIST:
        made.update(
            server_count=str(len(table.servers)),
            server_list=[
                {
                    "server_id": server.server_id,
                    **_values(server.extras),
                    "device": [{**_device(device), "rank_id": str(device.rank)} for device in server.devices],
                }
                for server in table.servers
            ],
        )
        if table.super_pods:
            made["super_pod_list"] = [
                {"super_pod_id": pod.super_pod_id, "server_list": [{"server_id": one} for one in pod.server_ids]}
                for pod in table.super_pods
            ]
    else:
        made.update(group_count="1", group_list=[_lab(table) if table.dialect == LAB else _pods(table)])
    return {**made, **_values(table.extras)}


def convert(table: RankTable, dialect: str) -> tuple[RankTable, tuple[str, ...]]:
    """Convert a table to another dialect.

    Args:
        table: any table.
        dialect: one of DIALECTS.
    Returns:
        (table, dropped): the second has the keys that do not exist in the dialect.
    Raises:
        ValueError: the dialect is unknown, or cannot represent the ranks.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r} is not allowed. Use one of {', '.join(DIALECTS)}.")
    if dialect == table.dialect:
        return table, ()
    made = {SERVER_LIST: _to_server_list, LAB: _to_lab, POD: _to_pods}[dialect](table)
    to_json(made)  # raises ValueError if the dialect cannot represent the ranks
    return made, _dropped_keys(table, made)


def _lab(table: RankTable) -> JsonObject:
    devices = [(server, device) for server in table.servers for device in server.devices]
    return {
        "group_name": table.group_name or "",
        "device_num": str(table.size),
        "server_num": str(len({server.server_id for server in table.servers})),
        "instance_count": str(table.size),
        **_values(table.group_extras),
        "instance_list": [
            {"rank_id": str(device.rank), "server_id": server.server_id, "devices": [_device(device)]}
            for server, device in devices
        ],
    }


def _pods(table: RankTable) -> JsonObject:
    ranks = [device.rank for server in table.servers for device in server.devices]
    if ranks != list(range(len(ranks))):
        raise ValueError(
            f"the dialect {POD!r} has no rank ids and numbers the ranks in file order, but here they are "
            f"{', '.join(map(str, ranks))}. Use the dialect {SERVER_LIST!r} or {LAB!r}."
        )
    made: JsonObject = {} if table.group_name is None else {"group_name": table.group_name}
    made.update(device_count=str(table.size), instance_count=str(len(table.servers)), **_values(table.group_extras))
    made["instance_list"] = [
        {
            **({} if server.pod_name is None else {"pod_name": server.pod_name}),
            "server_id": server.server_id,
            **_values(server.extras),
            "devices": [_device(device) for device in server.devices],
        }
        for server in table.servers
    ]
    return made


def _to_server_list(table: RankTable) -> RankTable:
    return RankTable(_by_server(table), SERVER_LIST, table.version or "1.0", table.status)


def _to_lab(table: RankTable) -> RankTable:
    ports = max(
        sum(len(server.devices) for server in table.servers if server.server_id == name)
        for name in {server.server_id for server in table.servers}
    )
    keys: JsonObject = {
        **_LAB_KEYS,
        "para_plane_nic_num": str(ports),
        "para_plane_nic_name": [f"eth{port}" for port in range(ports)],
    }
    extras = tuple((key, json.dumps(value)) for key, value in sorted(keys.items()))
    return RankTable(_by_server(table), LAB, None, table.status, group_name="", extras=extras)


def _to_pods(table: RankTable) -> RankTable:
    """Convert to pods: servers in the order of their ranks, each with a pod name."""
    servers = sorted(
        (
            Server(server.server_id, tuple(sorted(server.devices, key=lambda device: device.rank)))
            for server in _by_server(table)
        ),
        key=lambda server: server.devices[0].rank,
    )
    named = [
        dataclasses.replace(
            server,
            pod_name=f"{_POD_GROUP}-{at}",
            devices=tuple(dataclasses.replace(device, super_device_id=None) for device in server.devices),
        )
        for at, server in enumerate(servers)
    ]
    return RankTable(tuple(named), POD, None, table.status, group_name=_POD_GROUP)


def _by_server(table: RankTable) -> tuple[Server, ...]:
    """Return each server once, without the keys of the table's own dialect."""
    found: dict[str, list[Device]] = {}
    for server in table.servers:
        found.setdefault(server.server_id, []).extend(server.devices)
    return tuple(Server(server_id, tuple(devices)) for server_id, devices in found.items())


def _dropped_keys(table: RankTable, made: RankTable) -> tuple[str, ...]:
    """Return the keys of a table that its converted form does not have."""
    kept, had = _keys(to_json(made)), _keys(to_json(table))
    return tuple(key for key in had if key not in kept and key not in _STRUCTURE_KEYS)


def _keys(value: Any) -> dict[str, None]:
    """Return all keys of all objects, in order of appearance."""
    found: dict[str, None] = {}
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found.update(_keys(one))
    return {**(dict.fromkeys(value) if isinstance(value, dict) else {}), **found}


def _device(device: Device) -> JsonObject:
    made: JsonObject = {"device_id": str(device.device_id)}
    if device.super_device_id is not None:
        made["super_device_id"] = device.super_device_id
    if device.device_ip is not None:
        made["device_ip"] = device.device_ip
    return {**made, **_values(device.extras)}


def _values(extras: Extras) -> JsonObject:
    return {key: json.loads(value) for key, value in extras}


def _render(value: Any, indent: str) -> str:
    """Return JSON text with each value on one line if it fits."""
    short = json.dumps(value)
    if (
        not isinstance(value, (dict, list))
        or not value
        or (len(indent + short) < _LINE_LENGTH and not _is_outer(value))
    ):
        return short
    inner = indent + "  "
    items: Sequence[str]
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key)}: {_render(one, inner)}" for key, one in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _render(one, inner) for one in value) + f"\n{indent}]"


def _is_outer(value: Any) -> bool:
    """Return True for objects in lists in objects, which are hard to read on one line."""
    return (
        isinstance(value, dict)
        and any(isinstance(one, list) and any(isinstance(item, dict) for item in one) for one in value.values())
        and "devices" not in value
    )
