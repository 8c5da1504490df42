"""Hosts with their slots, as the launchers of MPI and Horovod read them, and the ranks that fill the slots."""

from __future__ import annotations

import re
from typing import Sequence

from npu_shim.distributed.ranktable.generate import Host
from npu_shim.distributed.ranktable.model import count_text

_LINE = re.compile(r"^(?P<host>\[[^\]\s]+\]|[^\s:\[\]]+)(?::(?P<count>\d+)|\s+(?P<keys>.*))?$")
_KEY = re.compile(r"^([a-z_-]+)\s*=\s*(\d+)$")


def parse_hostfile(text: str, name: str) -> tuple[Host, ...]:
    """Return the hosts of a file: ``HOST slots=8`` (Open MPI, Horovod) or ``HOST:8`` (MPICH) a line.

    A host without a number has one of the file of its devices (hccn.conf). Comments begin with ``#``.

    Args:
        text: of the file.
        name: name of the file in errors.
    Raises:
        ValueError: a line has another form, or names a host again; or there is no host.
    """
    hosts: list[Host] = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        place = f"{name}, line {number}"
        host, count = _parse_host_and_slots(content, place)
        if host in [one.name for one in hosts]:
            raise ValueError(f"{place}: {host!r} is named twice. Name each host once, with all its slots.")
        hosts.append(Host(host, None if count is None else tuple(range(count))))
    if not hosts:
        raise ValueError(f"{name} names no host. Write a line such as 'host1 slots=8' for each host.")
    return tuple(hosts)


def fill_hosts(hosts: Sequence[Host], ranks: int | None) -> tuple[Host, ...]:
    """Return the hosts with the devices that the ranks use. Ranks fill a host before the next one.

    Args:
        hosts: each with its devices.
        ranks: number of ranks; None for all slots.
    Raises:
        ValueError: there are fewer slots than ranks, or a host has no number of slots.
    """
    filled: list[Host] = []
    slots = 0
    for host in hosts:
        if host.devices is None:
            raise ValueError(f"host {host.name}: the number of slots is missing. Write {host.name}:8, or slots=8.")
        used = host.devices if ranks is None else host.devices[: max(0, ranks - slots)]
        slots += len(host.devices)
        if used:
            filled.append(Host(host.name, used))
    if ranks is not None and slots < ranks:
        named = ",".join(f"{host.name}:{len(host.devices or ())}" for host in hosts)
        raise ValueError(
            f"{named} has {count_text(slots, 'slot')}, fewer than {ranks} ranks. Add slots, or start {slots}."
        )
    return tuple(filled)


def _parse_host_and_slots(content: str, place: str) -> tuple[str, int | None]:
    match = _LINE.match(content)
    wrong = ValueError(f"{place}: {content!r} is not allowed. Write HOST, 'HOST slots=8' or HOST:8.")
    if match is None:
        raise wrong
    keys: dict[str, int] = {}
    for part in re.sub(r"\s*=\s*", "=", match.group("keys") or "").split():
        key = _KEY.match(part)
        if key is None:
            raise wrong
        keys[key.group(1)] = int(key.group(2))
    count = int(match.group("count")) if match.group("count") else keys.get("slots")
    if count == 0:
        raise ValueError(f"{place}: {content!r} names no slot. Write at least 1, or remove the line.")
    return match.group("host").strip("[]"), count
