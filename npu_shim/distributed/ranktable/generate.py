"""Makes a rank table from hosts and device counts, with the cards' addresses where a host's hccn.conf is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Sequence

from npu_shim.distributed.ranktable.model import SERVER_LIST, Device, RankTable, Server

HCCN_CONF = "/etc/hccn.conf"
_HOST = re.compile(r"^(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<count>\d+)|:(?P<first>\d+)-(?P<last>\d+))?$")
_ADDRESS = re.compile(r"^\s*address_(\d+)\s*=\s*(\S+)\s*$")
_MOST_MADE_UP = 64  # devices of a server whose addresses can be made up
_MOST_SERVERS = 126


@dataclass(frozen=True)
class Host:
    """A host of the job and its devices; None where its hccn.conf says which it has."""

    name: str
    devices: tuple[int, ...] | None


def parse_hosts(text: str) -> tuple[Host, ...]:
    """Reads ``10.0.0.1:8,10.0.0.2:4-7,[fd00::1]:2``: hosts, each with a count or a range of devices.

    Raises:
        ValueError: it is not written so, or a host is named twice.
    """
    hosts: list[Host] = []
    for part in text.split(","):
        match = _HOST.match(part.strip())
        if match is None:
            raise ValueError(
                f"--hosts {text!r}: {part.strip()!r} is not allowed: write HOST:COUNT as in 10.0.0.1:8, "
                "or HOST:FIRST-LAST as in 10.0.0.1:4-7; an IPv6 address in brackets, [fd00::1]:8."
            )
        name = match.group("host").strip("[]")
        first, last = (int(match.group(key) or 0) for key in ("first", "last"))
        if match.group("count") is not None:
            last = int(match.group("count")) - 1
        has_devices = match.group("count") is not None or match.group("first") is not None
        if has_devices and last < first:
            raise ValueError(
                f"--hosts {text!r}: {part.strip()!r} names no device. Write 10.0.0.1:8 for devices 0 to "
                "7, 10.0.0.1:4-7 for some of them."
            )
        if name in [host.name for host in hosts]:
            raise ValueError(f"--hosts {text!r}: {name!r} is named twice. Name each host once, with all its devices.")
        hosts.append(Host(name, tuple(range(first, last + 1)) if has_devices else None))
    return tuple(hosts)


def read_hccn(text: str, name: str) -> dict[int, str]:
    """The address of each device, from the text of a hccn.conf.

    Args:
        text: lines of ``address_0=192.168.100.101``, and others.
        name: what errors call it.
    Raises:
        ValueError: it has no address, or two for one device.
    """
    found: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _ADDRESS.match(line)
        if match is None:
            continue
        device = int(match.group(1))
        if device in found and found[device] != match.group(2):
            raise ValueError(
                f"{name}, line {number}: address_{device} is {match.group(2)}, and {found[device]} "
                "further up. Keep the one that hccn_tool shows."
            )
        found[device] = match.group(2)
    if not found:
        raise ValueError(
            f"{name} has no line address_N=..., so the devices of this host are not known. Set them with "
            "hccn_tool, or count the devices: --hosts HOST:8."
        )
    return dict(sorted(found.items()))


def make(hosts: Sequence[Host], addresses: Mapping[str, Mapping[int, str]]) -> tuple[RankTable, tuple[str, ...]]:
    """Makes a table; ranks are numbered host by host, device by device.

    Args:
        hosts: in the order of their ranks.
        addresses: by host the address of each device, for hosts whose hccn.conf is known.
    Returns:
        (table, made up): the second names the hosts of which no address is known; there they are numbered as
        the manuals do it, which is enough on the CPU.
    Raises:
        ValueError: the devices of a host are not known, or a device that is not in its hccn.conf is asked for.
    """
    servers, rank, made_up = [], 0, []
    for at, host in enumerate(hosts):
        known = addresses.get(host.name)
        if known is None:
            made_up.append(host.name)
        devices = []
        for device in _devices(host, known):
            address = known[device] if known is not None else _made_up(at, device)
            devices.append(Device(rank, device, address))
            rank += 1
        servers.append(Server(host.name, tuple(devices)))
    return RankTable(tuple(servers), SERVER_LIST, "1.0"), tuple(made_up)


def _devices(host: Host, known: Mapping[int, str] | None) -> tuple[int, ...]:
    if host.devices is None and known is None:
        raise ValueError(
            f"host {host.name}: how many devices it has is not known. Write {host.name}:8, or give its "
            f"hccn.conf: --hccn {host.name}=FILE."
        )
    devices = host.devices if host.devices is not None else tuple(known or ())
    missing = [device for device in devices if known is not None and device not in known]
    if missing:
        have = ", ".join(map(str, known or ()))
        raise ValueError(
            f"host {host.name}: its hccn.conf has no device {', '.join(map(str, missing))}; it has "
            f"{have}. Name only these."
        )
    return devices


def _made_up(server: int, device: int) -> str:
    """192.168.100.1 and so on: four networks, in each of which a server has two devices."""
    if device >= _MOST_MADE_UP or server >= _MOST_SERVERS:
        raise ValueError(
            f"addresses can be made up for {_MOST_SERVERS} hosts with {_MOST_MADE_UP} devices; for more "
            "give the hccn.conf of each host: --hccn HOST=FILE."
        )
    block, pair = divmod(device, 8)
    return f"192.168.{100 + 4 * block + pair % 4}.{2 * server + 1 + pair // 4}"
