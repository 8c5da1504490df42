"""A process keeps as many modules as fit into its part of the free memory."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.project import free_memory
from convert_tf2npu.project.free_memory import LEAST_NODES, nodes_for_free_bytes

_GB = 1 << 30


@pytest.mark.parametrize(
    "free,processes,nodes",
    [
        (0, 1, LEAST_NODES),
        (_GB // 2, 1, LEAST_NODES),
        (2 * _GB, 1, 838_860),
        (8 * _GB, 1, 1_600_000),
        (8 * _GB, 4, 838_860),
        (64 * _GB, 192, LEAST_NODES),
        (512 * _GB, 192, 1_118_481),
    ],
    ids=["not known", "little", "2 GB", "8 GB", "four processes", "many processes", "many processes of a large host"],
)
def test_all_processes_together_take_a_quarter_of_the_free_memory(free: int, processes: int, nodes: int) -> None:
    assert nodes_for_free_bytes(free, processes) == nodes


@pytest.mark.parametrize(
    "limit,free",
    [("max\n", 4 << 20), ("1048576\n", 1 << 20), ("9223372036854771712\n", 4 << 20), (None, 4 << 20)],
    ids=["a container without a limit", "a container with a limit", "the limit of version 1 for none", "no container"],
)
def test_the_limit_of_a_container_counts(
    limit: str | None, free: int, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "limit").write_text(limit or "", encoding="ascii")
    texts = {"/proc/meminfo": "MemTotal: 8192 kB\nMemFree: 1024 kB\nMemAvailable:    4096 kB\n"}
    monkeypatch.setattr(free_memory, "_LIMITS", (str(tmp_path / "limit"), str(tmp_path / "none")))
    read = free_memory._read_system_file
    monkeypatch.setattr(free_memory, "_read_system_file", lambda path: texts.get(path) or read(path))
    assert free_memory.free_bytes() == free


def test_the_least_is_kept_where_the_system_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "_read_system_file", lambda path: "")
    assert free_memory.nodes_that_fit(1) == LEAST_NODES
