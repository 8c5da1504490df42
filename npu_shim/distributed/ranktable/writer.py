"""Write a rank table in its dialect."""

from __future__ import annotations

import json
from typing import Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.distributed.ranktable.model import LAB, POD, RANK_LIST, SERVER_LIST, Device, Extras, NetLayer, RankTable

_LINE_LENGTH = 120


def table_text(table: RankTable) -> str:
    """Return the text of a file in the dialect of the table.

    Numbers are strings, as in all known files; those of ``rank_list`` are numbers, as HCCL needs them.

    Raises:
        ValueError: the dialect cannot represent the ranks.
    """
    return _json_text(table_to_json(table), "") + "\n"


def table_to_json(table: RankTable) -> JsonObject:
    """Return the JSON value of a table in its dialect.

    Raises:
        ValueError: the dialect is ``pod``, and the ranks do not follow the order of the file.
    """
    data: JsonObject = {} if table.version is None else {"version": table.version}
    data["status"] = table.status
    if table.dialect == SERVER_LIST:
        data.update(
            server_count=str(len(table.servers)),
            server_list=[
                {
                    "server_id": server.server_id,
                    **_extras_to_json(server.extras),
                    "device": [{**_device_to_json(device), "rank_id": str(device.rank)} for device in server.devices],
                }
                for server in table.servers
            ],
        )
        if table.super_pods:
            data["super_pod_list"] = [
                {"super_pod_id": pod.super_pod_id, "server_list": [{"server_id": one} for one in pod.server_ids]}
                for pod in table.super_pods
            ]
    elif table.dialect == RANK_LIST:
        data.update(rank_count=table.size, rank_list=[_rank_to_json(device) for _, device in table.placements()])
    else:
        data.update(group_count="1", group_list=[_lab_to_json(table) if table.dialect == LAB else _pods_to_json(table)])
    return {**data, **_extras_to_json(table.extras)}


def _lab_to_json(table: RankTable) -> JsonObject:
    devices = [(server, device) for server in table.servers for device in server.devices]
    return {
        "group_name": table.group_name or "",
        "device_num": str(table.size),
        "server_num": str(len({server.server_id for server in table.servers})),
        "instance_count": str(table.size),
        **_extras_to_json(table.group_extras),
        "instance_list": [
            {"rank_id": str(device.rank), "server_id": server.server_id, "devices": [_device_to_json(device)]}
            for server, device in devices
        ],
    }


def _pods_to_json(table: RankTable) -> JsonObject:
    ranks = [device.rank for server in table.servers for device in server.devices]
    if ranks != list(range(len(ranks))):
        raise ValueError(
            f"the dialect {POD!r} has no rank ids and numbers the ranks in file order, but here they are "
            f"{', '.join(map(str, ranks))}. Use the dialect {SERVER_LIST!r} or {LAB!r}."
        )
    group: JsonObject = {} if table.group_name is None else {"group_name": table.group_name}
    group.update(
        device_count=str(table.size), instance_count=str(len(table.servers)), **_extras_to_json(table.group_extras)
    )
    group["instance_list"] = [
        {
            **({} if server.pod_name is None else {"pod_name": server.pod_name}),
            "server_id": server.server_id,
            **_extras_to_json(server.extras),
            "devices": [_device_to_json(device) for device in server.devices],
        }
        for server in table.servers
    ]
    return group


def _device_to_json(device: Device) -> JsonObject:
    entry: JsonObject = {"device_id": str(device.device_id)}
    if device.super_device_id is not None:
        entry["super_device_id"] = device.super_device_id
    if device.device_ip is not None:
        entry["device_ip"] = device.device_ip
    return {**entry, **_extras_to_json(device.extras)}


def _rank_to_json(device: Device) -> JsonObject:
    entry: JsonObject = {"rank_id": device.rank, "device_id": device.device_id, "local_id": device.local_id}
    return {**entry, **_extras_to_json(device.extras), "level_list": [_layer_to_json(layer) for layer in device.layers]}


def _layer_to_json(layer: NetLayer) -> JsonObject:
    entry: JsonObject = {"net_layer": layer.number, "net_instance_id": layer.instance}
    if layer.net_type is not None:
        entry["net_type"] = layer.net_type
    addresses = [
        {"addr_type": one.kind, "addr": one.address, "ports": list(one.ports), **_extras_to_json(one.extras)}
        for one in layer.addresses
    ]
    return {**entry, **_extras_to_json(layer.extras), "rank_addr_list": addresses}


def _extras_to_json(extras: Extras) -> JsonObject:
    return {key: json.loads(value) for key, value in extras}


def _json_text(value: object, indent: str) -> str:
    """Return JSON text with each value on one line if it fits."""
    short = json.dumps(value)
    if (
        not isinstance(value, (dict, list))
        or not value
        or (len(indent + short) < _LINE_LENGTH and not _needs_lines(value))
    ):
        return short
    inner = indent + "  "
    items: Sequence[str]
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key)}: {_json_text(one, inner)}" for key, one in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _json_text(one, inner) for one in value) + f"\n{indent}]"


def _needs_lines(value: object) -> bool:
    """Return True for objects in lists in objects, which are hard to read on one line."""
    return (
        isinstance(value, dict)
        and any(isinstance(one, list) and any(isinstance(item, dict) for item in one) for one in value.values())
        and "devices" not in value
    )
