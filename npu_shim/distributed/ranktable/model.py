"""A rank table: which rank runs on which device of which server, whatever dialect the file is in.

``read(path)`` takes every dialect that is in use (``ranktable_dialects``), and
raises for what cannot be a job. ``examine(text)`` finds all that is wrong,
also what only the network of the cards refuses, and raises nothing.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from typing import Iterator, Tuple

SERVER_LIST, LAB, POD = "server_list", "lab", "pod"
DIALECTS = (SERVER_LIST, LAB, POD)
COMPLETED, INITIALIZING = "completed", "initializing"
ERROR, WARNING = "error", "warning"

# Keys that have no field of their own, each with its value as JSON text
Extras = Tuple[Tuple[str, str], ...]


@dataclass(frozen=True)
class Device:
    """One device, and the rank that runs on it.

    device_ip is the address of its network port, None where the file gives none.
    """

    rank: int
    device_id: int
    device_ip: str | None = None
    super_device_id: str | None = None
    extras: Extras = ()


@dataclass(frozen=True)
class Server:
    """The devices of one server that take part; in the dialect ``pod``, of one pod of a server."""

    server_id: str
    devices: tuple[Device, ...]
    pod_name: str | None = None
    extras: Extras = ()

    @property
    def address(self) -> str:
        """Where its host is reached: host_ip where the file has one, else the server_id."""
        given = extra(self.extras, "host_ip")
        return given if isinstance(given, str) and given else self.server_id


@dataclass(frozen=True)
class SuperPod:
    """Servers (by server_id) whose devices share one fabric; version 1.2 of the dialect ``server_list``."""

    super_pod_id: str
    server_ids: tuple[str, ...]


@dataclass(frozen=True)
class RankTable:
    """All ranks of a job and where they run.

    ``dialect`` is one of DIALECTS: ``server_list`` is today's form, ``lab`` the
    older group_list with one instance per rank (device_num), ``pod`` the one of
    cloud platforms with one instance per pod (device_count), in which ranks
    follow the order of the file.
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
        """Number of ranks."""
        return sum(len(server.devices) for server in self.servers)

    def placements(self) -> list[tuple[Server, Device]]:
        """Server and device of every rank, rank 0 first."""
        return sorted(((s, d) for s in self.servers for d in s.devices), key=lambda placed: placed[1].rank)


@dataclass(frozen=True)
class Problem:
    """Something wrong in a rank table: where (a JSON path), what, and what to do."""

    path: str
    text: str
    advice: str
    severity: str = ERROR

    def __str__(self) -> str:
        return f"{self.path}: {self.text}. {self.advice}"


class RankTableError(ValueError):
    """A rank table that cannot be used; ``problems`` has everything that is wrong with it."""

    def __init__(self, name: str, problems: tuple[Problem, ...]) -> None:
        self.name, self.problems = name, problems
        super().__init__(f"{name}: {self.summary}")

    @property
    def summary(self) -> str:
        """The first problem, and how many more there are."""
        more = len(self.problems) - 1
        return f"{self.problems[0]}" + (f" ({more} more: npu-shim ranktable check {self.name})" if more else "")


def extra(extras: Extras, key: str) -> object:
    """The value of a key that has no field of its own; None where it is not there."""
    found: dict[str, str] = dict(extras)
    return json.loads(found[key]) if key in found else None


def counted(number: int, one: str, many: str = "") -> str:
    """'1 rank', '2 ranks'."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def errors(problems: Iterator[Problem]) -> tuple[Problem, ...]:
    """Those problems that no runtime gets along with."""
    return tuple(problem for problem in problems if problem.severity == ERROR)


def parse(text: str, name: str = "rank table") -> RankTable:
    """Reads the text of a rank table.

    Args:
        text: JSON, of any dialect.
        name: what errors call it.
    Returns:
        The table.
    Raises:
        RankTableError: it is not JSON, or describes no job.
    """
    from npu_shim.distributed.ranktable.validate import examine

    table, problems = examine(text)
    wrong = errors(iter(problems))
    if table is None or wrong:
        raise RankTableError(name, wrong)
    return table


def read(path: str) -> RankTable:
    """Reads a file; an unchanged file is parsed once.

    Raises:
        OSError: it cannot be read.
        RankTableError: it holds no rank table that can be used.
    """
    found = os.stat(path)
    return _read(path, found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


@functools.lru_cache(maxsize=4)
def _read(path: str, *version: int) -> RankTable:
    return parse(text_of(path), path)


def text_of(path: str) -> str:
    """The text of a file, with or without a byte order mark.

    Raises:
        OSError: it cannot be read.
        RankTableError: it holds no text.
    """
    try:
        with open(path, encoding="utf-8-sig") as stream:
            return stream.read()
    except UnicodeDecodeError as error:
        raise RankTableError(path, (Problem("$", f"the file is not text ({error})", "Save it as UTF-8."),)) from error
