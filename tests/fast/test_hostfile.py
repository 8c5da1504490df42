"""Hosts and slots: the files of Open MPI, MPICH and Horovod, and the ranks that fill the slots."""

from __future__ import annotations

from typing import Any

import pytest

from npu_shim.distributed.ranktable.generate import Host
from npu_shim.distributed.ranktable.hostfile import fill_hosts, parse_hostfile

pytestmark = pytest.mark.once

FILE = """# cluster
node1 slots=2 max_slots=4   # Open MPI
node2 slots = 1
10.0.0.3:3

[fd00::4]:1
node5
"""


def test_each_form_of_a_line() -> None:
    assert parse_hostfile(FILE, "f") == (
        Host("node1", (0, 1)),
        Host("node2", (0,)),
        Host("10.0.0.3", (0, 1, 2)),
        Host("fd00::4", (0,)),
        Host("node5", None),
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "f names no host. Write a line such as 'host1 slots=8' for each host."),
        ("a\nb:1\na slots=2", "f, line 3: 'a' is named twice. Name each host once, with all its slots."),
        ("a:0", "f, line 1: 'a:0' names no slot. Write at least 1, or remove the line."),
        ("a slots=0", "f, line 1: 'a slots=0' names no slot."),
        ("a slots=two", "f, line 1: 'a slots=two' is not allowed. Write HOST, 'HOST slots=8' or HOST:8."),
        ("a 8", "f, line 1: 'a 8' is not allowed."),
        ("fd00::4", "f, line 1: 'fd00::4' is not allowed."),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_hostfile(text, "f")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "ranks, filled",
    [
        (None, {"a": (0, 1), "b": (4, 5, 6)}),
        (5, {"a": (0, 1), "b": (4, 5, 6)}),
        (3, {"a": (0, 1), "b": (4,)}),
        (2, {"a": (0, 1)}),
        (1, {"a": (0,)}),
    ],
)
def test_ranks_fill_a_host_before_the_next_one(ranks: Any, filled: dict[str, Any]) -> None:
    hosts = (Host("a", (0, 1)), Host("b", (4, 5, 6)))
    assert {host.name: host.devices for host in fill_hosts(hosts, ranks)} == filled
