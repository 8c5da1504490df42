"""Generate a rank table from hosts and their devices.

The device addresses come from each host's hccn.conf, and for the Ascend 950 from its hccl_rootinfo.json.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Callable, Iterable, Mapping, NamedTuple, Sequence, Tuple

from npu_shim.distributed.ranktable import model, rootinfo
from npu_shim.distributed.ranktable.net_layers import IPV4, TOPOLOGY_FILE
from npu_shim.distributed.ranktable.rank_list import group_by_server

HCCN_CONF = "/etc/hccn.conf"
PlaceholderHosts = Tuple[str, ...]
_HOST = re.compile(r"^(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<count>\d+)|:(?P<first>\d+)-(?P<last>\d+))?$")
_ADDRESS = re.compile(r"^\s*address_(\d+)\s*=\s*(\S+)\s*$")
_MAX_DEVICES, _MAX_SERVERS = 64, 126  # with placeholder addresses


@dataclass(frozen=True)
class Host:
    """A host of the job and its devices; None for the devices of its hccn.conf."""

    name: str
    devices: tuple[int, ...] | None


class Source(NamedTuple):
    """The file of a host with its devices.

    Attributes:
        path: on the host.
        option: the option of ``npu-shim ranktable make`` for a copy of it.
        facts: what a table has from it.
        parse: returns the devices from text and name; each is an address, or a Device.
        generate: returns a table and the hosts with placeholders from hosts and their devices.
    """

    path: str
    option: str
    facts: str
    parse: Callable[[str, str], Mapping[int, str | model.Device]]
    generate: Callable[..., tuple[model.RankTable, PlaceholderHosts]]


def file_source(dialect: str) -> Source:
    """Return the file of a host from which tables of a dialect are generated."""
    if dialect == model.RANK_LIST:
        return Source(rootinfo.ROOT_INFO, "--rootinfo", "addresses", rootinfo.parse_root_devices, generate_rank_list)
    return Source(HCCN_CONF, "--hccn", "device_ip", parse_hccn, generate_server_list)


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


def parse_hccn(text: str, name: str) -> dict[int, str]:
    """Return the address of each device from the text of an hccn.conf.

    Args:
        text: lines such as ``address_0=192.168.100.101``, and others.
        name: name of the file in errors.
    Raises:
        ValueError: the file has no address, or two for one device.
    """
    addresses: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _ADDRESS.match(line)
        if match is None:
            continue
        device = int(match.group(1))
        if device in addresses and addresses[device] != match.group(2):
            raise ValueError(
                f"{name}, line {number}: address_{device} is {match.group(2)}, but {addresses[device]} in an earlier "
                "line. Keep the one that hccn_tool shows."
            )
        addresses[device] = match.group(2)
    if not addresses:
        raise ValueError(
            f"{name} has no line address_N=..., so the devices of this host are unknown. Set the addresses with "
            "hccn_tool, or give the number of devices: --hosts HOST:8."
        )
    return dict(sorted(addresses.items()))


def generate_server_list(
    hosts: Sequence[Host], addresses: Mapping[str, Mapping[int, str]]
) -> tuple[model.RankTable, PlaceholderHosts]:
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
    servers: list[model.Server] = []
    placeholders = [host.name for host in hosts if host.name not in addresses]
    for at, host in enumerate(hosts):
        known = addresses.get(host.name)
        numbers = _checked_device_ids(host, known, "its hccn.conf", "--hccn")
        first = sum(len(server.devices) for server in servers)
        devices = tuple(
            model.Device(
                rank,
                number,
                known[number] if known is not None else _placeholder_address(at, number, "hccn.conf", "--hccn"),
            )
            for rank, number in enumerate(numbers, first)
        )
        servers.append(model.Server(host.name, devices))
    return model.RankTable(tuple(servers), model.SERVER_LIST, model.SERVERS), tuple(placeholders)


def generate_rank_list(
    hosts: Sequence[Host], rootinfo_devices: Mapping[str, Mapping[int, model.Device]]
) -> tuple[model.RankTable, PlaceholderHosts]:
    """Generate a rank table of version 2.0, as generate() does one of version 1.0.

    Args:
        rootinfo_devices: the devices by host, for hosts with a known hccl_rootinfo.json. Those of other hosts get
            one net layer, named after the host.
        others: as for generate().
    """
    devices: list[model.Device] = []
    placeholders = [host.name for host in hosts if host.name not in rootinfo_devices]
    for at, host in enumerate(hosts):
        own = rootinfo_devices.get(host.name)
        for number in _checked_device_ids(host, own, "its hccl_rootinfo.json", "--rootinfo"):
            device = own[number] if own is not None else _placeholder_device(host, at, number)
            devices.append(replace(device, rank=len(devices)))
    return model.RankTable(group_by_server(devices), model.RANK_LIST, model.RANKS), tuple(placeholders)


def _checked_device_ids(host: Host, rootinfo_ids: Iterable[int] | None, source: str, option: str) -> tuple[int, ...]:
    """Return the devices of a host: those that are named, or all that its file has."""
    existing = None if rootinfo_ids is None else tuple(rootinfo_ids)
    if existing is None and host.devices is None:
        raise ValueError(
            f"host {host.name}: the number of devices is unknown. Write {host.name}:8, or pass {source}: {option} "
            f"{host.name}=FILE."
        )
    devices = host.devices if host.devices is not None else existing or ()
    missing = [device for device in devices if existing is not None and device not in existing]
    if missing:
        raise ValueError(
            f"host {host.name}: {source} has no device {', '.join(map(str, missing))}; it has "
            f"{', '.join(map(str, existing or ()))}. Name only these."
        )
    return devices


def _placeholder_device(host: Host, server: int, device: int) -> model.Device:
    address = model.NetAddress(IPV4, _placeholder_address(server, device, "hccl_rootinfo.json", "--rootinfo"), ("0/0",))
    return model.Device(0, device, local_id=device, layers=(model.NetLayer(0, host.name, TOPOLOGY_FILE, (address,)),))


def _placeholder_address(server: int, device: int, source: str, option: str) -> str:
    """Return 192.168.100.1 and so on: four networks, in each of which a server has two devices."""
    if device >= _MAX_DEVICES or server >= _MAX_SERVERS:
        raise ValueError(
            f"placeholder addresses exist for {_MAX_SERVERS} hosts with {_MAX_DEVICES} devices only. Pass the "
            f"{source} of each host: {option} HOST=FILE."
        )
    block, pair = divmod(device, 8)
    return f"192.168.{100 + 4 * block + pair % 4}.{2 * server + 1 + pair // 4}"
