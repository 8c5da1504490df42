"""From JSON to a RankTable, one function for each dialect, with the path of everything that does not fit."""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Sequence

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

_DIGITS = re.compile(r"^[0-9]{1,9}$")
_TOP = ("version", "status", "group_count", "group_list", "server_count", "server_list", "super_pod_list")
_GROUP = ("device_num", "server_num", "device_count", "group_name", "instance_count", "instance_list")
_DEVICE = ("device_id", "device_ip", "super_device_id")


@dataclass(frozen=True)
class Place:
    """Where in the file a device is: the paths of its object, of its rank_id and of its server_id."""

    server_id: str
    device: Device
    path: str
    rank_path: str
    server_path: str


@dataclass
class Reading:
    """What a file says: the places of all devices, the table, and what does not fit."""

    table: RankTable | None = None
    places: list[Place] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def say(self, path: str, text: str, advice: str, severity: str = ERROR) -> None:
        """Notes a problem."""
        self.problems.append(Problem(path, text, advice, severity))


class _Incomplete(Exception):
    """Something is missing, and the problem has been noted."""


def read_data(data: Any) -> Reading:
    """Reads the JSON value of a rank table of any dialect.

    Args:
        data: what the JSON parser returned.
    Returns:
        A Reading; its table is None where the file does not say enough to make one.
    """
    made = Reading()
    try:
        made.table = _table(data, made)
    except _Incomplete:
        pass  # noted where it was found
    return made


def _table(data: Any, made: Reading) -> RankTable:
    if not isinstance(data, dict):
        made.say("$", f"is {_kind(data)}", "A rank table is one object: { ... }")
        raise _Incomplete
    lists = [key for key in ("server_list", "group_list") if key in data]
    if len(lists) == 2:
        made.say("$", "has both server_list and group_list", "Keep the one that describes the job")
        raise _Incomplete
    if not lists:
        advice = "A rank table has a server_list (today's form) or a group_list (older forms)"
        if "rank_list" in data:
            advice += "; rank_list is the form of newer products, which TensorFlow does not train on"
        near = closest_of(("server_list", "group_list"), data)
        made.say("$", f"has neither server_list nor group_list{near}", advice)
        raise _Incomplete
    status = _text(data, "status", "$", made, required=False) or COMPLETED
    if status not in (COMPLETED, INITIALIZING):
        made.say(
            "$.status", f"is {status!r}", f"It is {COMPLETED!r}, or {INITIALIZING!r} while the table is being made"
        )
    elif status != COMPLETED:
        made.say("$.status", f"is {status!r}: the table is not ready", f"Use it when it is {COMPLETED!r}", WARNING)
    version = _text(data, "version", "$", made, required=False)
    common: dict[str, Any] = {"status": status, "version": version, "extras": _extras(data, _TOP)}
    return _server_list(data, made, common) if lists == ["server_list"] else _group_list(data, made, common)


def _server_list(data: dict[str, Any], made: Reading, common: dict[str, Any]) -> RankTable:
    entries = _objects(data, "server_list", "$", made)
    _count(data, "server_count", len(entries), "$", "server_list", made, required=True)
    if common["version"] is None:
        made.say("$", "has no version", 'Write "version": "1.0"', WARNING)
    servers = []
    for path, entry in entries:
        server_id = _text(entry, "server_id", path, made)
        listed = _objects(entry, "device", path, made)
        devices = tuple(_device(one, where, made) for where, one in listed)
        _place(
            made,
            server_id,
            f"{path}.server_id",
            [(device, where, f"{where}.rank_id") for device, (where, _) in zip(devices, listed)],
        )
        servers.append(Server(server_id, devices, extras=_extras(entry, ("server_id", "device"))))
    pods = tuple(
        SuperPod(
            _text(pod, "super_pod_id", path, made),
            tuple(_text(one, "server_id", where, made) for where, one in _objects(pod, "server_list", path, made)),
        )
        for path, pod in (_objects(data, "super_pod_list", "$", made) if "super_pod_list" in data else ())
    )
    return RankTable(tuple(servers), SERVER_LIST, super_pods=pods, **common)


def _group_list(data: dict[str, Any], made: Reading, common: dict[str, Any]) -> RankTable:
    groups = _objects(data, "group_list", "$", made)
    _count(data, "group_count", len(groups), "$", "group_list", made)
    names = data.get("para_plane_nic_name")
    if isinstance(names, list):
        _count(data, "para_plane_nic_num", len(names), "$", "para_plane_nic_name", made, severity=WARNING)
    if len(groups) > 1:
        made.say("$.group_list", f"has {len(groups)} groups", "A job is one group; write a table for each job")
        raise _Incomplete
    path, group = groups[0]
    instances = _objects(group, "instance_list", path, made)
    _count(group, "instance_count", len(instances), path, "instance_list", made)
    common["group_name"] = _text(group, "group_name", path, made, required=False)
    common["group_extras"] = _extras(group, _GROUP)
    ranked = any("rank_id" in instance for _, instance in instances)
    servers = _lab(instances, made) if ranked else _pods(instances, made)
    table = RankTable(servers, LAB if ranked else POD, **common)
    for key in ("device_num", "device_count"):
        _count(group, key, table.size, path, "instance_list", made, "device")
    _count(group, "server_num", len({server.server_id for server in servers}), path, "instance_list", made, "server")
    return table


def _lab(instances: Sequence[tuple[str, dict[str, Any]]], made: Reading) -> tuple[Server, ...]:
    """One instance for each rank."""
    found: dict[str, list[Device]] = {}
    for path, instance in instances:
        devices = _objects(instance, "devices", path, made)
        if len(devices) != 1:
            made.say(
                f"{path}.devices",
                f"has {counted(len(devices), 'device')}",
                "An instance with a rank_id has exactly one",
            )
            raise _Incomplete
        server_id = _text(instance, "server_id", path, made)
        device = _device(devices[0][1], devices[0][0], made, _number(instance, "rank_id", path, made))
        for key in sorted(set(instance) - {"devices", "rank_id", "server_id"}):
            made.say(f"{path}.{key}", "is no key of an instance", "It is passed over; take it away", WARNING)
        _place(made, server_id, f"{path}.server_id", [(device, devices[0][0], f"{path}.rank_id")])
        found.setdefault(server_id, []).append(device)
    return tuple(Server(server_id, tuple(devices)) for server_id, devices in found.items())


def _pods(instances: Sequence[tuple[str, dict[str, Any]]], made: Reading) -> tuple[Server, ...]:
    """One instance for each pod; ranks are not in the file, they follow its order."""
    servers: list[Server] = []
    for path, instance in instances:
        first = len(made.places)
        entries = _objects(instance, "devices", path, made)
        devices = tuple(_device(one, where, made, first + at) for at, (where, one) in enumerate(entries))
        server_id = _text(instance, "server_id", path, made)
        _place(
            made,
            server_id,
            f"{path}.server_id",
            [(device, where, where) for device, (where, _) in zip(devices, entries)],
        )
        servers.append(
            Server(
                server_id,
                devices,
                _text(instance, "pod_name", path, made, required=False),
                _extras(instance, ("devices", "pod_name", "server_id")),
            )
        )
    return tuple(servers)


def _device(entry: dict[str, Any], path: str, made: Reading, rank: int | None = None) -> Device:
    """A device whose rank is its own rank_id, or given by what it is in."""
    own_rank = rank is None
    return Device(
        rank=_number(entry, "rank_id", path, made) if rank is None else rank,
        device_id=_number(entry, "device_id", path, made),
        device_ip=_text(entry, "device_ip", path, made, required=False) or None,
        super_device_id=_text(entry, "super_device_id", path, made, required=False),
        extras=_extras(entry, _DEVICE + ("rank_id",) * own_rank),
    )


def _place(made: Reading, server_id: str, server_path: str, devices: Sequence[tuple[Device, str, str]]) -> None:
    made.places += [Place(server_id, device, path, rank_path, server_path) for device, path, rank_path in devices]


def _objects(entry: dict[str, Any], key: str, path: str, made: Reading) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a list, each with its path."""
    found = _required(entry, key, path, made)
    if not isinstance(found, list) or not found:
        made.say(f"{path}.{key}", f"is {_kind(found)}", "It is a list of objects, one at least: [{ ... }]")
        raise _Incomplete
    for at, one in enumerate(found):
        if not isinstance(one, dict):
            made.say(f"{path}.{key}[{at}]", f"is {_kind(one)}", "It is an object: { ... }")
            raise _Incomplete
    return [(f"{path}.{key}[{at}]", one) for at, one in enumerate(found)]


def _text(entry: dict[str, Any], key: str, path: str, made: Reading, required: bool = True) -> Any:
    """A text, or a number as text; None where it is not there and need not be."""
    if key not in entry and not required:
        return None
    found = _required(entry, key, path, made)
    if isinstance(found, bool) or not isinstance(found, (str, int)) or (required and found == ""):
        made.say(f"{path}.{key}", f"is {_kind(found)}", 'It is a text: "..."')
        raise _Incomplete
    return str(found)


def _number(entry: dict[str, Any], key: str, path: str, made: Reading) -> int:
    found = _text(entry, key, path, made).strip()
    if not _DIGITS.match(found):
        made.say(f"{path}.{key}", f"is {found[:40]!r}", 'It is a whole number, 0 or more, as in "0"')
        raise _Incomplete
    return int(found)


def _count(
    entry: dict[str, Any],
    key: str,
    wanted: int,
    path: str,
    inside: str,
    made: Reading,
    what: str = "entry",
    required: bool = False,
    severity: str = ERROR,
) -> None:
    """Compares a declared number with what is there of something inside a list."""
    if key not in entry and not required:
        return
    if key not in entry:
        made.say(path, f"has no {key}{closest_of((key,), entry)}", f'Write "{key}": "{wanted}"', WARNING)
    elif str(entry[key]).strip() != str(wanted):
        made.say(
            f"{path}.{key}",
            f"is {entry[key]!r}, but there {'is' if wanted == 1 else 'are'} "
            f"{counted(wanted, what, 'entries' if what == 'entry' else '')} in {inside}",
            f'Write "{key}": "{wanted}", or complete the list',
            severity,
        )


def _required(entry: dict[str, Any], key: str, path: str, made: Reading) -> Any:
    if key not in entry:
        made.say(path, f"has no {key}{closest_of((key,), entry)}", f"Add {key}")
        raise _Incomplete
    return entry[key]


def closest_of(wanted: Sequence[str], entry: dict[str, Any]) -> str:
    """Which of an object's keys may be a misspelling of a wanted one, as an addition to a sentence."""
    near = [one for key in wanted for one in difflib.get_close_matches(key, list(entry), 1, 0.75)]
    return f", but {near[0]}" if near else ""


def _extras(entry: dict[str, Any], known: Sequence[str]) -> Extras:
    return tuple((key, json.dumps(value, sort_keys=True)) for key, value in sorted(entry.items()) if key not in known)


def _kind(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    return "an empty list" if value == [] else "a list" if isinstance(value, list) else "an object"
