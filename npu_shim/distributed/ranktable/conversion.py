"""Convert a rank table to another dialect or version."""

from __future__ import annotations

import dataclasses
import json
from typing import Tuple

from npu_shim._tensorflow.types import JsonObject
from npu_shim.distributed.ranktable import model
from npu_shim.distributed.ranktable.writer import table_to_json

DroppedKeys = Tuple[str, ...]
TARGETS = (*model.DIALECTS, *(version for versions in model.VERSIONS.values() for version in versions))
# The keys that readers of the dialect lab expect besides the ranks
_LAB_KEYS = {"board_id": "0x0000", "chip_info": "910", "deploy_mode": "lab", "para_plane_nic_location": "device"}
_POD_GROUP = "worker"
_PORTS = ("device_port", "host_port")  # the keys of a rank in version 2.0 that a device of version 1.0 has, too
# Keys that belong to the structure of a dialect; every dialect has their information
_STRUCTURE_KEYS = (
    "version server_count server_list device devices group_count group_list device_num server_num device_count "
    "instance_count instance_list rank_count rank_list rank_id"
).split()


def convert_table(table: model.RankTable, target: str) -> tuple[model.RankTable, DroppedKeys]:
    """Convert a table to another dialect or version.

    Args:
        table: any table.
        target: one of TARGETS.
    Returns:
        (table, dropped): the second has the keys that do not exist in the target.
    Raises:
        ValueError: the target is unknown, cannot represent the ranks, or needs facts that the table does not have.
    """
    if target not in TARGETS:
        raise ValueError(f"target={target!r} is not allowed. Use one of {', '.join(TARGETS)}.")
    dialect = next((name for name, versions in model.VERSIONS.items() if target in versions), target)
    version = target if target != dialect else None
    if dialect == model.RANK_LIST and table.dialect != model.RANK_LIST:
        raise ValueError(
            f"version {model.RANKS!r} needs the level_list of each device, its addresses and ports in each net layer, "
            f"which a {_dialect_and_version(table)} does not have. Make a new table from each host's "
            "/etc/hccl_rootinfo.json: "
            "npu-shim ranktable make --product A5 --hosts HOST:COUNT,... --rootinfo HOST=FILE."
        )
    converted = table
    if dialect != table.dialect:
        converted = {model.SERVER_LIST: _to_server_list, model.LAB: _to_lab, model.POD: _to_pods}[dialect](table)
    if version not in (None, converted.version):
        converted = _to_version(converted, version)
    table_to_json(converted)  # raises ValueError if the dialect cannot represent the ranks
    return converted, _dropped_keys(table, converted)


def _dialect_and_version(table: model.RankTable) -> str:
    return f"{table.dialect} of version {table.version}" if table.version else table.dialect


def _to_version(table: model.RankTable, version: str | None) -> model.RankTable:
    """Return the table in another version of its dialect."""
    devices = [device for server in table.servers for device in server.devices]
    if version == model.SUPER_PODS and not (table.super_pods and all(device.super_device_id for device in devices)):
        raise ValueError(
            f"version {model.SUPER_PODS!r} needs a super_pod_list and the super_device_id of each device, which this "
            "table does not have. Add them (npu-smi info -t spod-info -i ID -c CHIP shows both), or use version "
            f"{model.SERVERS!r}, which an A3 accepts without super-pods."
        )
    if version == model.SERVERS:
        table = dataclasses.replace(table, servers=tuple(map(_server_outside_pods, table.servers)), super_pods=())
    return dataclasses.replace(table, version=version)


def _server_outside_pods(server: model.Server) -> model.Server:
    """Return a server outside of super-pods."""
    return dataclasses.replace(
        server, devices=tuple(dataclasses.replace(device, super_device_id=None) for device in server.devices)
    )


def _to_server_list(table: model.RankTable) -> model.RankTable:
    return model.RankTable(_merge_servers(table), model.SERVER_LIST, model.SERVERS, table.status)


def _to_lab(table: model.RankTable) -> model.RankTable:
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
    return model.RankTable(_merge_servers(table), model.LAB, None, table.status, group_name="", extras=extras)


def _to_pods(table: model.RankTable) -> model.RankTable:
    """Convert to pods: servers in the order of their ranks, each with a pod name."""
    servers = sorted(
        (
            model.Server(server.server_id, tuple(sorted(server.devices, key=lambda device: device.rank)))
            for server in _merge_servers(table)
        ),
        key=lambda server: server.devices[0].rank,
    )
    named = [
        dataclasses.replace(_server_outside_pods(one), pod_name=f"{_POD_GROUP}-{at}") for at, one in enumerate(servers)
    ]
    return model.RankTable(tuple(named), model.POD, None, table.status, group_name=_POD_GROUP)


def _merge_servers(table: model.RankTable) -> tuple[model.Server, ...]:
    """Return each server once, without the keys of the table's own dialect."""
    devices_by_server: dict[str, list[model.Device]] = {}
    for server in table.servers:
        devices_by_server.setdefault(server.server_id, []).extend(map(_without_layers, server.devices))
    return tuple(model.Server(server_id, tuple(devices)) for server_id, devices in devices_by_server.items())


def _without_layers(device: model.Device) -> model.Device:
    """Return a device of version 2.0 as the other versions have it: ports are strings there."""
    if not device.layers:
        return device
    ports = tuple(
        (key, json.dumps(str(model.extra_value(device.extras, key)))) for key, _ in device.extras if key in _PORTS
    )
    return model.Device(device.rank, device.device_id, extras=ports)


def _dropped_keys(table: model.RankTable, converted: model.RankTable) -> tuple[str, ...]:
    """Return the keys of a table that its converted form does not have."""
    kept, had = _all_keys(table_to_json(converted)), _all_keys(table_to_json(table))
    return tuple(key for key in had if key not in kept and key not in _STRUCTURE_KEYS)


def _all_keys(value: object) -> dict[str, None]:
    """Return all keys of all objects, in order of appearance."""
    inner_keys: dict[str, None] = {}
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        inner_keys.update(_all_keys(one))
    return {**(dict.fromkeys(value) if isinstance(value, dict) else {}), **inner_keys}
