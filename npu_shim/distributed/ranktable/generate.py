"""Generate a rank table from hosts and their devices, with the device addresses of hccn.conf files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Sequence

from npu_shim.distributed.ranktable.model import SERVER_LIST, Device, RankTable, Server

HCCN_CONF = "/etc/hccn.conf"
_HOST = re.compile(r"^(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<count>\d+)|:(?P<first>\d+)-(?P<last>\d+))?$")
_ADDRESS = re.compile(r"^\s*address_(\d+)\s*=\s*(\S+)\s*$")
_MAX_DEVICES, _MAX_SERVERS = 64, 126  # with placeholder addresses


@dataclass(frozen=True)
class Host:
    """A host of the job and its devices; None for the devices of its hccn.conf."""

    name: str
    devices: tuple[int, ...] | None


def parse_hosts(text: str) -> tuple[Host, ...]:
    """Parse hosts, each with a number or range of devices: ``10.0.0.1:8,10.0.0.2:4-7,[fd00::1]:2``.

    Raises:
        ValueError: the syntax is wrong, or a host is named twice.
    """
    hosts: list[Host] = []
    for part in text.split(","):
        match = _HOST.match(part.strip())
        if match is None:
            raise ValueError(
                f"--hosts {text!r}: {part.strip()!r} is not allowed. Write HOST:COUNT (10.0.0.1:8) or HOST:FIRST-LAST "
                "(10.0.0.1:4-7), with IPv6 addresses in brackets ([fd00::1]:8)."
            )
        name = match.group("host").strip("[]")
        first, last = (int(match.group(key) or 0) for key in ("first", "last"))
        if match.group("count") is not None:
            last = int(match.group("count")) - 1
        has_devices = match.group("count") is not None or match.group("first") is not None
        if has_devices and last < first:
            raise ValueError(
                f"--hosts {text!r}: {part.strip()!r} names no device. Write 10.0.0.1:8 for devices 0 to 7, or "
                "10.0.0.1:4-7 for devices 4 to 7."
            )
        if name in [host.name for host in hosts]:
            raise ValueError(f"--hosts {text!r}: {name!r} is named twice. Name each host once, with all its devices.")
        hosts.append(Host(name, tuple(range(first, last + 1)) if has_devices else None))
    return tuple(hosts)


def read_hccn(text: str, name: str) -> dict[int, str]:
    """Return the address of each device from the text of an hccn.conf.

    Args:
        text: lines such as ``address_0=192.168.100.101``, and others.
        name: name of the file in errors.
    Raises:
        ValueError: the file has no address, or two for one device.
    """
    found: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _ADDRESS.match(line)
        if match is None:
            continue
        device = int(match.group(1))
        if device in found and found[device] != match.group(2):
            raise ValueError(
                f"{name}, line {number}: address_{device} is {match.group(2)}, but {found[device]} in an earlier "
                "line. Keep the one that hccn_tool shows."
            )
        found[device] = match.group(2)
    if not found:
        raise ValueError(
            f"{name} has no line address_N=..., so the devices of this host are unknown. Set the addresses with "
            "hccn_tool, or give the number of devices: --hosts HOST:8."
        )
    return dict(sorted(found.items()))


def generate(hosts: Sequence[Host], addresses: Mapping[str, Mapping[int, str]]) -> tuple[RankTable, tuple[str, ...]]:
    """Generate a rank table; ranks are numbered host by host, device by device.

    Args:
        hosts: in the order of their ranks.
        addresses: the address of each device by host, for hosts with a known hccn.conf.
    Returns:
        (table, placeholders): the second has the names of the hosts without known addresses. Their devices get
        placeholder addresses, which work on the CPU.
    Raises:
        ValueError: the devices of a host are unknown, or its hccn.conf does not have a named device.
    """
    servers, rank, placeholders = [], 0, []
    for at, host in enumerate(hosts):
        known = addresses.get(host.name)
        if known is None:
            placeholders.append(host.name)
        devices = []
        for device in _devices(host, known):
            address = known[device] if known is not None else _placeholder(at, device)
            devices.append(Device(rank, device, address))
            rank += 1
        servers.append(Server(host.name, tuple(devices)))
    return RankTable(tuple(servers), SERVER_LIST, "1.0"), tuple(placeholders)


def _devices(host: Host, known: Mapping[int, str] | None) -> tuple[int, ...]:
    if host.devices is None and known is None:
        raise ValueError(
            f"host {host.name}: the number of devices is unknown. Write {host.name}:8, or pass its hccn.conf: --hccn "
            f"{host.name}=FILE."
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


def _placeholder(server: int, device: int) -> str:
    """Return 192.168.100.1 and so on: four networks, in each of which a server has two devices."""
    if device >= _MAX_DEVICES or server >= _MAX_SERVERS:
        raise ValueError(
            f"placeholder addresses exist for {_MAX_SERVERS} hosts with {_MAX_DEVICES} devices only. Pass the "
            "hccn.conf of each host: --hccn HOST=FILE."
        )
    block, pair = divmod(device, 8)
    return f"192.168.{100 + 4 * block + pair % 4}.{2 * server + 1 + pair // 4}"
