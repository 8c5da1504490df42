"""Convert the JSON of each dialect to a RankTable, and report problems with their JSON path."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Sequence

from npu_shim.distributed.ranktable.model import (
    COMPLETED,
    ERROR,
    INITIALIZING,
    LAB,
    POD,
    SERVER_LIST,
    WARNING,
    Device,
    Extras,
    Problem,
    RankTable,
    Server,
    SuperPod,
    counted,
)

JsonObject = Dict[str, Any]
_DIGITS = re.compile(r"^[0-9]{1,9}$")
_TOP = ("version", "status", "group_count", "group_list", "server_count", "server_list", "super_pod_list")
_GROUP = ("device_num", "server_num", "device_count", "group_name", "instance_count", "instance_list")
_DEVICE = ("device_id", "device_ip", "super_device_id")


@dataclass(frozen=True)
class DevicePath:
    """A device and its JSON paths: of its object, its rank_id and its server_id."""

    server_id: str
    device: Device
    path: str
    rank_path: str
    server_path: str


@dataclass
class Reading:
    """The content of a file: the table, the paths of all devices, and the problems."""

    table: RankTable | None = None
    devices: list[DevicePath] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def report(self, path: str, text: str, advice: str, severity: str = ERROR) -> None:
        """Add a problem."""
        self.problems.append(Problem(path, text, advice, severity))


class _Incomplete(Exception):
    """The file is incomplete; the problem has been reported."""


def read_data(data: Any) -> Reading:
    """Read the JSON value of a rank table of any dialect.

    Args:
        data: the result of the JSON parser.
    Returns:
        A Reading; its table is None if the file is incomplete.
    """
    reading = Reading()
    try:
        reading.table = _table(data, reading)
    except _Incomplete:
        reading.table = None  # the problem has been reported
    return reading


def _table(data: Any, reading: Reading) -> RankTable:
    if not isinstance(data, dict):
        reading.report("$", f"is {_describe(data)}", "Write one object: { ... }")
        raise _Incomplete
    lists = [key for key in ("server_list", "group_list") if key in data]
    if len(lists) == 2:
        reading.report("$", "has both server_list and group_list", "Keep the one that describes the job")
        raise _Incomplete
    if not lists:
        advice = "Add server_list (current form) or group_list (older forms)"
        if "rank_list" in data:
            advice += "; rank_list belongs to newer products that do not support TensorFlow"
        near = _similar_key(("server_list", "group_list"), data)
        reading.report("$", f"has neither server_list nor group_list{near}", advice)
        raise _Incomplete
    status = _text(data, "status", "$", reading, required=False) or COMPLETED
    if status not in (COMPLETED, INITIALIZING):
        reading.report("$.status", f"is {status!r}", f"Write {COMPLETED!r}; {INITIALIZING!r} marks an unfinished table")
    elif status != COMPLETED:
        reading.report("$.status", f"is {status!r}: the table is not ready", f"Wait until it is {COMPLETED!r}", WARNING)
    version = _text(data, "version", "$", reading, required=False)
    common: JsonObject = {"status": status, "version": version, "extras": _extras(data, _TOP)}
    return _server_list(data, reading, common) if lists == ["server_list"] else _group_list(data, reading, common)


def _server_list(data: JsonObject, reading: Reading, common: JsonObject) -> RankTable:
    entries = _objects(data, "server_list", "$", reading)
    _count(data, "server_count", len(entries), "$", "server_list", reading, required=True)
    if common["version"] is None:
        reading.report("$", "has no version", 'Write "version": "1.0"', WARNING)
    servers = []
    for path, entry in entries:
        server_id = _text(entry, "server_id", path, reading)
        listed = _objects(entry, "device", path, reading)
        devices = tuple(_device(one, where, reading) for where, one in listed)
        _add_paths(
            reading,
            server_id,
            f"{path}.server_id",
            [(device, where, f"{where}.rank_id") for device, (where, _) in zip(devices, listed)],
        )
        servers.append(Server(server_id, devices, extras=_extras(entry, ("server_id", "device"))))
    pods = tuple(
        SuperPod(
            _text(pod, "super_pod_id", path, reading),
            tuple(
                _text(one, "server_id", where, reading) for where, one in _objects(pod, "server_list", path, reading)
            ),
        )
        for path, pod in (_objects(data, "super_pod_list", "$", reading) if "super_pod_list" in data else ())
    )
    return RankTable(tuple(servers), SERVER_LIST, super_pods=pods, **common)


def _group_list(data: JsonObject, reading: Reading, common: JsonObject) -> RankTable:
    groups = _objects(data, "group_list", "$", reading)
    _count(data, "group_count", len(groups), "$", "group_list", reading)
    names = data.get("para_plane_nic_name")
    if isinstance(names, list):
        _count(data, "para_plane_nic_num", len(names), "$", "para_plane_nic_name", reading, severity=WARNING)
    if len(groups) > 1:
        reading.report("$.group_list", f"has {len(groups)} groups", "Write one table for each job")
        raise _Incomplete
    path, group = groups[0]
    instances = _objects(group, "instance_list", path, reading)
    _count(group, "instance_count", len(instances), path, "instance_list", reading)
    common["group_name"] = _text(group, "group_name", path, reading, required=False)
    common["group_extras"] = _extras(group, _GROUP)
    ranked = any("rank_id" in instance for _, instance in instances)
    servers = _lab(instances, reading) if ranked else _pods(instances, reading)
    table = RankTable(servers, LAB if ranked else POD, **common)
    for key in ("device_num", "device_count"):
        _count(group, key, table.size, path, "instance_list", reading, "device")
    _count(group, "server_num", len({server.server_id for server in servers}), path, "instance_list", reading, "server")
    return table


def _lab(instances: Sequence[tuple[str, JsonObject]], reading: Reading) -> tuple[Server, ...]:
    """Read one instance per rank."""
    found: dict[str, list[Device]] = {}
    for path, instance in instances:
        devices = _objects(instance, "devices", path, reading)
        if len(devices) != 1:
            reading.report(
                f"{path}.devices",
                f"has {counted(len(devices), 'device')}",
                "Keep one device in an instance with a rank_id",
            )
            raise _Incomplete
        server_id = _text(instance, "server_id", path, reading)
        device = _device(devices[0][1], devices[0][0], reading, _number(instance, "rank_id", path, reading))
        for key in sorted(set(instance) - {"devices", "rank_id", "server_id"}):
            reading.report(f"{path}.{key}", "is not a key of an instance", "It is ignored; remove it", WARNING)
        _add_paths(reading, server_id, f"{path}.server_id", [(device, devices[0][0], f"{path}.rank_id")])
        found.setdefault(server_id, []).append(device)
    return tuple(Server(server_id, tuple(devices)) for server_id, devices in found.items())


def _pods(instances: Sequence[tuple[str, JsonObject]], reading: Reading) -> tuple[Server, ...]:
    """Read one instance per pod. The file has no ranks; they follow its order."""
    servers: list[Server] = []
    for path, instance in instances:
        first = len(reading.devices)
        entries = _objects(instance, "devices", path, reading)
        devices = tuple(_device(one, where, reading, first + at) for at, (where, one) in enumerate(entries))
        server_id = _text(instance, "server_id", path, reading)
        _add_paths(
            reading,
            server_id,
            f"{path}.server_id",
            [(device, where, where) for device, (where, _) in zip(devices, entries)],
        )
        servers.append(
            Server(
                server_id,
                devices,
                _text(instance, "pod_name", path, reading, required=False),
                _extras(instance, ("devices", "pod_name", "server_id")),
            )
        )
    return tuple(servers)


def _device(entry: JsonObject, path: str, reading: Reading, rank: int | None = None) -> Device:
    """Return a device; its rank is its own rank_id, or passed by the caller."""
    own_rank = rank is None
    return Device(
        rank=_number(entry, "rank_id", path, reading) if rank is None else rank,
        device_id=_number(entry, "device_id", path, reading),
        device_ip=_text(entry, "device_ip", path, reading, required=False) or None,
        super_device_id=_text(entry, "super_device_id", path, reading, required=False),
        extras=_extras(entry, _DEVICE + ("rank_id",) * own_rank),
    )


def _add_paths(reading: Reading, server_id: str, server_path: str, devices: Sequence[tuple[Device, str, str]]) -> None:
    reading.devices += [
        DevicePath(server_id, device, path, rank_path, server_path) for device, path, rank_path in devices
    ]


def _objects(entry: JsonObject, key: str, path: str, reading: Reading) -> list[tuple[str, JsonObject]]:
    """Return the objects of a list, each with its path."""
    found = _required(entry, key, path, reading)
    if not isinstance(found, list) or not found:
        reading.report(f"{path}.{key}", f"is {_describe(found)}", "Write a list of at least one object: [{ ... }]")
        raise _Incomplete
    for at, one in enumerate(found):
        if not isinstance(one, dict):
            reading.report(f"{path}.{key}[{at}]", f"is {_describe(one)}", "Write an object: { ... }")
            raise _Incomplete
    return [(f"{path}.{key}[{at}]", one) for at, one in enumerate(found)]


def _text(entry: JsonObject, key: str, path: str, reading: Reading, required: bool = True) -> Any:
    """Return a string, or an integer as a string; None if the key is optional and does not exist."""
    if key not in entry and not required:
        return None
    found = _required(entry, key, path, reading)
    if isinstance(found, bool) or not isinstance(found, (str, int)) or (required and found == ""):
        reading.report(f"{path}.{key}", f"is {_describe(found)}", 'Write a string: "..."')
        raise _Incomplete
    return str(found)


def _number(entry: JsonObject, key: str, path: str, reading: Reading) -> int:
    found = _text(entry, key, path, reading).strip()
    if not _DIGITS.match(found):
        reading.report(f"{path}.{key}", f"is {found[:40]!r}", 'Write an integer of at least 0, such as "0"')
        raise _Incomplete
    return int(found)


def _count(
    entry: JsonObject,
    key: str,
    wanted: int,
    path: str,
    inside: str,
    reading: Reading,
    what: str = "entry",
    required: bool = False,
    severity: str = ERROR,
) -> None:
    """Compare a declared number with the length of a list."""
    if key not in entry and not required:
        return
    if key not in entry:
        reading.report(path, f"has no {key}{_similar_key((key,), entry)}", f'Write "{key}": "{wanted}"', WARNING)
    elif str(entry[key]).strip() != str(wanted):
        reading.report(
            f"{path}.{key}",
            f"is {entry[key]!r}, but there {'is' if wanted == 1 else 'are'} "
            f"{counted(wanted, what, 'entries' if what == 'entry' else '')} in {inside}",
            f'Write "{key}": "{wanted}", or complete the list',
            severity,
        )


def _required(entry: JsonObject, key: str, path: str, reading: Reading) -> Any:
    if key not in entry:
        reading.report(path, f"has no {key}{_similar_key((key,), entry)}", f"Add {key}")
        raise _Incomplete
    return entry[key]


def _similar_key(wanted: Sequence[str], entry: JsonObject) -> str:
    """Return the key of an object that may be a misspelling of a wanted key, as the end of a sentence."""
    near = [one for key in wanted for one in difflib.get_close_matches(key, list(entry), 1, 0.75)]
    return f", but {near[0]}" if near else ""


def _extras(entry: JsonObject, known: Sequence[str]) -> Extras:
    return tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(entry.items()) if key not in known)


def _describe(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    return "an empty list" if value == [] else "a list" if isinstance(value, list) else "an object"
