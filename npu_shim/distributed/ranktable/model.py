"""The model of a rank table: which rank runs on which device of which server, independent of the dialect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Iterable, Tuple

SERVER_LIST, RANK_LIST, LAB, POD = "server_list", "rank_list", "lab", "pod"
DIALECTS = (SERVER_LIST, RANK_LIST, LAB, POD)
# Versions of the dialects that have one; 1.2 has super-pods
SERVERS, SUPER_PODS, RANKS = "1.0", "1.2", "2.0"
VERSIONS = {SERVER_LIST: (SERVERS, SUPER_PODS), RANK_LIST: (RANKS,)}
COMPLETED, INITIALIZING = "completed", "initializing"
ERROR, WARNING = "error", "warning"

# Keys without a field in the model, each with its value as JSON text
Extras = Tuple[Tuple[str, str], ...]


@dataclass(frozen=True)
class NetAddress:
    """An address of a device: ``kind`` is EID, IPV4 or IPV6; ``ports`` are the ports of the chip that have it."""

    kind: str
    address: str
    ports: tuple[str, ...]
    extras: Extras = ()


@dataclass(frozen=True)
class NetLayer:
    """A layer of the network and the addresses of a device in it; 0 is the innermost layer, within a server.

    Devices with the same ``instance`` of a layer are connected in it. ``net_type`` is None if the file has none.
    """

    number: int
    instance: str
    net_type: str | None
    addresses: tuple[NetAddress, ...]
    extras: Extras = ()


@dataclass(frozen=True)
class Device:
    """A device and the rank that runs on it.

    device_ip is the address of its network port; None if the file has none. Tables of version 2.0 have ``local_id``
    and ``layers`` instead.
    """

    rank: int
    device_id: int
    device_ip: str | None = None
    super_device_id: str | None = None
    extras: Extras = ()
    local_id: int | None = None
    layers: tuple[NetLayer, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return its network addresses: device_ip, or those of the innermost layer that has any."""
        if self.device_ip is not None:
            return (self.device_ip,)
        return next((tuple(a.address for a in layer.addresses) for layer in self.layers if layer.addresses), ())


@dataclass(frozen=True)
class Server:
    """The devices that a job uses on one server; in the dialect ``pod``, in one pod of a server."""

    server_id: str
    devices: tuple[Device, ...]
    pod_name: str | None = None
    extras: Extras = ()

    @property
    def address(self) -> str:
        """Return the network address of the host: host_ip, or server_id without it."""
        return self._text("host_ip") or self.server_id

    @property
    def pod_address(self) -> str:
        """Return container_ip, the network address of the pod that has the devices; an empty string without it."""
        return self._text("container_ip")

    def _text(self, key: str) -> str:
        given = extra_value(self.extras, key)
        return given if isinstance(given, str) else ""


@dataclass(frozen=True)
class SuperPod:
    """Servers (by server_id) whose devices share a fabric; only in version 1.2 of the dialect ``server_list``."""

    super_pod_id: str
    server_ids: tuple[str, ...]


@dataclass(frozen=True)
class RankTable:
    """All ranks of a job and their devices.

    ``dialect`` is one of DIALECTS: ``server_list`` is version 1.0 and 1.2, ``rank_list``
    version 2.0 of the Ascend 950, ``lab`` the older group_list with one instance per
    rank (device_num), ``pod`` the group_list of cloud platforms with one instance per
    pod (device_count), which numbers ranks in file order.
    """

    servers: tuple[Server, ...]
    dialect: str = SERVER_LIST
    version: str | None = None
    status: str = COMPLETED
    super_pods: tuple[SuperPod, ...] = ()
    group_name: str | None = None
    group_extras: Extras = ()
    extras: Extras = ()

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return sum(len(server.devices) for server in self.servers)

    def placements(self) -> list[tuple[Server, Device]]:
        """Return server and device of every rank, rank 0 first."""
        return sorted(((s, d) for s in self.servers for d in s.devices), key=lambda placed: placed[1].rank)


@dataclass(frozen=True)
class Problem:
    """A problem in a rank table: its JSON path, a description, and the fix."""

    path: str
    text: str
    advice: str
    severity: str = ERROR

    def __str__(self) -> str:
        return f"{self.path}: {self.text}. {self.advice}"


def warning_problem(path: str, text: str, advice: str) -> Problem:
    """Return a problem that does not stop the run."""
    return Problem(path, text, advice, WARNING)


class RankTableError(ValueError):
    """A rank table cannot be used; ``problems`` has the reasons."""

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        super().__init__(f"{name}: {self.summary}")

    @property
    def summary(self) -> str:
        """Return the first problem and the number of others."""
        more = len(self.problems) - 1
        return f"{self.problems[0]}" + (f" ({more} more: npu-shim ranktable check {self.name})" if more else "")


def extra_value(extras: Extras, key: str) -> object:
    """Return the value of a key without a field in the model; None if it does not exist."""
    texts: dict[str, str] = dict(extras)
    return json.loads(texts[key]) if key in texts else None


def count_text(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: '1 rank', '2 ranks'."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def only_errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems with severity 'error'."""
    return tuple(problem for problem in problems if problem.severity == ERROR)
