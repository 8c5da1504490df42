"""Convert the JSON of each dialect to a RankTable, and report problems with their JSON path."""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.ranktable import fields, model, rank_list

_LISTS = ("server_list", "rank_list", "group_list")
_TOP = ("version", "status", "group_count", "server_count", "rank_count", "super_pod_list", *_LISTS)
_GROUP = ("device_num", "server_num", "device_count", "group_name", "instance_count", "instance_list")
_DEVICE = ("device_id", "device_ip", "super_device_id")


def read_table_data(data: object) -> fields.Reading:
    """Read the JSON value of a rank table of any dialect.

    Args:
        data: the result of the JSON parser.
    Returns:
        A Reading; its table is None if the file is incomplete.
    """
    reading = fields.Reading()
    try:
        reading.table = _read_table(data, reading)
    except fields.Incomplete:
        reading.table = None  # the problem has been reported
    return reading


def _read_table(data: object, reading: fields.Reading) -> model.RankTable:
    if not isinstance(data, dict):
        reading.report("$", f"is {fields.json_value_text(data)}", "Write one object: { ... }")
        raise fields.Incomplete
    lists = [key for key in _LISTS if key in data]
    if len(lists) > 1:
        reading.report("$", f"has both {lists[0]} and {lists[1]}", "Keep the one that describes the job")
        raise fields.Incomplete
    if not lists:
        near = fields.similar_key_text(_LISTS, data)
        advice = "Add server_list (versions 1.0 and 1.2), rank_list (version 2.0) or group_list (older forms)"
        reading.report("$", f"has none of server_list, rank_list and group_list{near}", advice)
        raise fields.Incomplete
    status = fields.read_optional_text(data, "status", "$", reading) or model.COMPLETED
    if status not in (model.COMPLETED, model.INITIALIZING):
        reading.report(
            "$.status", f"is {status!r}", f"Write {model.COMPLETED!r}; {model.INITIALIZING!r} marks an unfinished table"
        )
    elif status != model.COMPLETED:
        reading.report(
            "$.status", f"is {status!r}: the table is not ready", f"Wait until it is {model.COMPLETED!r}", model.WARNING
        )
    version = fields.read_optional_text(data, "version", "$", reading)
    common: fields.JsonObject = {"status": status, "version": version, "extras": fields.unknown_keys(data, _TOP)}
    readers = {"server_list": _read_server_list, "rank_list": rank_list.read_rank_list, "group_list": _read_group_list}
    return readers[lists[0]](data, reading, common)


def _read_server_list(data: fields.JsonObject, reading: fields.Reading, common: fields.JsonObject) -> model.RankTable:
    entries = fields.objects_in_list(data, "server_list", "$", reading)
    fields.check_declared_count(data, "server_count", len(entries), "$", "server_list", reading, is_required=True)
    if common["version"] is None:
        reading.report("$", "has no version", 'Write "version": "1.0"', model.WARNING)
    servers = []
    for path, entry in entries:
        server_id = fields.read_text_field(entry, "server_id", path, reading)
        listed = fields.objects_in_list(entry, "device", path, reading)
        devices = tuple(_read_device(one, where, reading) for where, one in listed)
        fields.add_device_paths(
            reading,
            server_id,
            f"{path}.server_id",
            [(device, where, f"{where}.rank_id") for device, (where, _) in zip(devices, listed)],
        )
        servers.append(model.Server(server_id, devices, extras=fields.unknown_keys(entry, ("server_id", "device"))))
    pods = tuple(
        model.SuperPod(
            fields.read_text_field(pod, "super_pod_id", path, reading),
            tuple(
                fields.read_text_field(one, "server_id", where, reading)
                for where, one in fields.objects_in_list(pod, "server_list", path, reading)
            ),
        )
        for path, pod in (
            fields.objects_in_list(data, "super_pod_list", "$", reading) if "super_pod_list" in data else ()
        )
    )
    return model.RankTable(tuple(servers), model.SERVER_LIST, super_pods=pods, **common)


def _read_group_list(data: fields.JsonObject, reading: fields.Reading, common: fields.JsonObject) -> model.RankTable:
    groups = fields.objects_in_list(data, "group_list", "$", reading)
    fields.check_declared_count(data, "group_count", len(groups), "$", "group_list", reading)
    names = data.get("para_plane_nic_name")
    if isinstance(names, list):
        fields.check_declared_count(
            data, "para_plane_nic_num", len(names), "$", "para_plane_nic_name", reading, severity=model.WARNING
        )
    if len(groups) > 1:
        reading.report("$.group_list", f"has {len(groups)} groups", "Write one table for each job")
        raise fields.Incomplete
    path, group = groups[0]
    instances = fields.objects_in_list(group, "instance_list", path, reading)
    fields.check_declared_count(group, "instance_count", len(instances), path, "instance_list", reading)
    common["group_name"] = fields.read_optional_text(group, "group_name", path, reading)
    common["group_extras"] = fields.unknown_keys(group, _GROUP)
    ranked = any("rank_id" in instance for _, instance in instances)
    servers = _read_lab_table(instances, reading) if ranked else _read_pods(instances, reading)
    table = model.RankTable(servers, model.LAB if ranked else model.POD, **common)
    for key in ("device_num", "device_count"):
        fields.check_declared_count(group, key, table.size, path, "instance_list", reading, "device")
    fields.check_declared_count(
        group, "server_num", len({server.server_id for server in servers}), path, "instance_list", reading, "server"
    )
    return table


def _read_lab_table(
    instances: Sequence[tuple[str, fields.JsonObject]], reading: fields.Reading
) -> tuple[model.Server, ...]:
    """Read one instance per rank."""
    devices_by_server: dict[str, list[model.Device]] = {}
    for path, instance in instances:
        devices = fields.objects_in_list(instance, "devices", path, reading)
        if len(devices) != 1:
            reading.report(
                f"{path}.devices",
                f"has {model.count_text(len(devices), 'device')}",
                "Keep one device in an instance with a rank_id",
            )
            raise fields.Incomplete
        server_id = fields.read_text_field(instance, "server_id", path, reading)
        device = _read_device(
            devices[0][1], devices[0][0], reading, fields.read_number_field(instance, "rank_id", path, reading)
        )
        for key in sorted(set(instance) - {"devices", "rank_id", "server_id"}):
            reading.report(f"{path}.{key}", "is not a key of an instance", "It is ignored; remove it", model.WARNING)
        fields.add_device_paths(reading, server_id, f"{path}.server_id", [(device, devices[0][0], f"{path}.rank_id")])
        devices_by_server.setdefault(server_id, []).append(device)
    return tuple(model.Server(server_id, tuple(devices)) for server_id, devices in devices_by_server.items())


def _read_pods(instances: Sequence[tuple[str, fields.JsonObject]], reading: fields.Reading) -> tuple[model.Server, ...]:
    """Read one instance per pod. The file has no ranks; they follow its order."""
    servers: list[model.Server] = []
    for path, instance in instances:
        first = len(reading.devices)
        entries = fields.objects_in_list(instance, "devices", path, reading)
        devices = tuple(_read_device(one, where, reading, first + at) for at, (where, one) in enumerate(entries))
        server_id = fields.read_text_field(instance, "server_id", path, reading)
        fields.add_device_paths(
            reading,
            server_id,
            f"{path}.server_id",
            [(device, where, where) for device, (where, _) in zip(devices, entries)],
        )
        servers.append(
            model.Server(
                server_id,
                devices,
                fields.read_optional_text(instance, "pod_name", path, reading),
                fields.unknown_keys(instance, ("devices", "pod_name", "server_id")),
            )
        )
    return tuple(servers)


def _read_device(entry: fields.JsonObject, path: str, reading: fields.Reading, rank: int | None = None) -> model.Device:
    """Return a device; its rank is its own rank_id, or passed by the caller."""
    own_rank = rank is None
    return model.Device(
        rank=fields.read_number_field(entry, "rank_id", path, reading) if rank is None else rank,
        device_id=fields.read_number_field(entry, "device_id", path, reading),
        device_ip=fields.read_optional_text(entry, "device_ip", path, reading) or None,
        super_device_id=fields.read_optional_text(entry, "super_device_id", path, reading),
        extras=fields.unknown_keys(entry, _DEVICE + ("rank_id",) * own_rank),
    )
