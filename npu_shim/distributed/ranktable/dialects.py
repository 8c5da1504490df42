"""Convert the JSON of each dialect to a RankTable, and report problems with their JSON path."""

from __future__ import annotations

from dataclasses import replace
from typing import Sequence

from npu_shim.distributed.ranktable import model, rank_list
from npu_shim.distributed.ranktable.fields import Entry, Incomplete, Reading

_LISTS = ("server_list", "rank_list", "group_list")
_TOP = ("version", "status", "group_count", "server_count", "rank_count", "super_pod_list", *_LISTS)
_GROUP = ("device_num", "server_num", "device_count", "group_name", "instance_count", "instance_list")
_DEVICE = ("device_id", "device_ip", "super_device_id")


def read_table_data(data: object) -> Reading:
    """Read the JSON value of a rank table of any dialect.

    Args:
        data: the result of the JSON parser.
    Returns:
        A Reading; its table is None if the file is incomplete.
    """
    reading = Reading()
    try:
        reading.table = _read_table(Entry(data, "$", reading))
    except Incomplete:
        reading.table = None  # the problem has been reported
    return reading


def _read_table(top: Entry) -> model.RankTable:
    lists = [key for key in _LISTS if key in top.content]
    if len(lists) > 1:
        top.report("", f"has both {lists[0]} and {lists[1]}", "Keep the one that describes the job")
        raise Incomplete
    if not lists:
        near = top.similar_key_text(*_LISTS)
        advice = "Add server_list (versions 1.0 and 1.2), rank_list (version 2.0) or group_list (older forms)"
        top.report("", f"has none of server_list, rank_list and group_list{near}", advice)
        raise Incomplete
    status = top.optional_text("status") or model.COMPLETED
    if status not in (model.COMPLETED, model.INITIALIZING):
        advice = f"Write {model.COMPLETED!r}; {model.INITIALIZING!r} marks an unfinished table"
        top.report("status", f"is {status!r}", advice)
    elif status != model.COMPLETED:
        text, advice = f"is {status!r}: the table is not ready", f"Wait until it is {model.COMPLETED!r}"
        top.report("status", text, advice, model.WARNING)
    empty = model.RankTable((), lists[0], top.optional_text("version"), status, extras=top.unknown_keys(_TOP))
    readers = {"server_list": _read_server_list, "rank_list": rank_list.read_rank_list, "group_list": _read_group_list}
    return readers[lists[0]](top, empty)


def _read_server_list(top: Entry, empty: model.RankTable) -> model.RankTable:
    entries = top.objects("server_list")
    top.check_count("server_count", len(entries), "server_list", is_required=True)
    if empty.version is None:
        top.report("", "has no version", 'Write "version": "1.0"', model.WARNING)
    servers = []
    for entry in entries:
        server_id = entry.text("server_id")
        listed = entry.objects("device")
        devices = tuple(map(_read_device, listed))
        for one, device in zip(listed, devices):
            one.add_device(server_id, device, f"{one.path}.rank_id")
        servers.append(model.Server(server_id, devices, extras=entry.unknown_keys(("server_id", "device"))))
    pods = tuple(
        model.SuperPod(pod.text("super_pod_id"), tuple(one.text("server_id") for one in pod.objects("server_list")))
        for pod in (top.objects("super_pod_list") if "super_pod_list" in top.content else ())
    )
    return replace(empty, servers=tuple(servers), dialect=model.SERVER_LIST, super_pods=pods)


def _read_group_list(top: Entry, empty: model.RankTable) -> model.RankTable:
    groups = top.objects("group_list")
    top.check_count("group_count", len(groups), "group_list")
    names = top.content.get("para_plane_nic_name")
    if isinstance(names, list):
        top.check_count("para_plane_nic_num", len(names), "para_plane_nic_name", severity=model.WARNING)
    if len(groups) > 1:
        top.report("group_list", f"has {len(groups)} groups", "Write one table for each job")
        raise Incomplete
    group = groups[0]
    instances = group.objects("instance_list")
    group.check_count("instance_count", len(instances), "instance_list")
    name, extras = group.optional_text("group_name"), group.unknown_keys(_GROUP)
    ranked = any("rank_id" in instance.content for instance in instances)
    servers = _read_lab_table(instances) if ranked else _read_pods(instances)
    dialect = model.LAB if ranked else model.POD
    table = replace(empty, servers=servers, dialect=dialect, group_name=name, group_extras=extras)
    for key in ("device_num", "device_count"):
        group.check_count(key, table.size, "instance_list", "device")
    group.check_count("server_num", len({server.server_id for server in servers}), "instance_list", "server")
    return table


def _read_lab_table(instances: Sequence[Entry]) -> tuple[model.Server, ...]:
    """Read one instance per rank."""
    devices_by_server: dict[str, list[model.Device]] = {}
    for instance in instances:
        devices = instance.objects("devices")
        if len(devices) != 1:
            text = f"has {model.count_text(len(devices), 'device')}"
            instance.report("devices", text, "Keep one device in an instance with a rank_id")
            raise Incomplete
        server_id = instance.text("server_id")
        device = _read_device(devices[0], instance.number("rank_id"))
        for key in sorted(set(instance.content) - {"devices", "rank_id", "server_id"}):
            instance.report(key, "is not a key of an instance", "It is ignored; remove it", model.WARNING)
        devices[0].add_device(server_id, device, f"{instance.path}.rank_id")
        devices_by_server.setdefault(server_id, []).append(device)
    return tuple(model.Server(server_id, tuple(devices)) for server_id, devices in devices_by_server.items())


def _read_pods(instances: Sequence[Entry]) -> tuple[model.Server, ...]:
    """Read one instance per pod. The file has no ranks; they follow its order."""
    servers: list[model.Server] = []
    for instance in instances:
        first = sum(len(server.devices) for server in servers)
        entries = instance.objects("devices")
        devices = tuple(_read_device(one, first + at) for at, one in enumerate(entries))
        server_id = instance.text("server_id")
        for one, device in zip(entries, devices):
            one.add_device(server_id, device, one.path)
        extras = instance.unknown_keys(("devices", "pod_name", "server_id"))
        servers.append(model.Server(server_id, devices, instance.optional_text("pod_name"), extras))
    return tuple(servers)


def _read_device(entry: Entry, rank: int | None = None) -> model.Device:
    """Return a device; its rank is its own rank_id, or passed by the caller."""
    own_rank = rank is None
    return model.Device(
        rank=entry.number("rank_id") if rank is None else rank,
        device_id=entry.number("device_id"),
        device_ip=entry.optional_text("device_ip") or None,
        super_device_id=entry.optional_text("super_device_id"),
        extras=entry.unknown_keys(_DEVICE + ("rank_id",) * own_rank),
    )
