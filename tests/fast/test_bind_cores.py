"""``npu-shim launch --bind-cores``: processors and memory near the device of each rank, else even shares."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Sequence

import pytest

from npu_shim._host import host_device, numa
from npu_shim.launching.cores import share_processors
from npu_shim.launching.plan import RankSlot, Share, rank_processes

pytestmark = pytest.mark.once

NODES = {0: "0-3,16-19", 1: "4-7,20-23", 2: "8-11", 3: "12-15"}
ALL = range(24)
TOPOLOGY = """
           NPU0       NPU1       NPU2       CPU Affinity
NPU0       X          HCCS       HCCS       8-11
NPU1       HCCS       X          HCCS       8-11
NPU2       HCCS       HCCS       X          0-3,16-19

Legend:
  X    = Self
"""
CARDS = """
+-----------------------------+-----------------+---------------------------------------+
| npu-smi 1.0                 | Version: 1.0                                            |
| NPU   Name                  | Health          | Power(W)     Temp(C)                  |
| Chip  {phy}                 | Bus-Id          | AICore(%)    Memory-Usage(MB)         |
+=============================+=================+=======================================+
| 0     910B1                 | OK              | 93.0         49                       |
| 0     {first}               | 0000:C1:00.0    | 0            0    / 0                 |
+=============================+=================+=======================================+
| 1     910B1                 | OK              | 95.1         50                       |
| 0     {second}              | 0000:02:00.0    | 0            0    / 0                 |
+=============================+=================+=======================================+
"""


@pytest.fixture
def host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return the root of a host with a card and four NUMA nodes; its npu-smi prints files of that folder."""
    for node, cores in NODES.items():
        folder = tmp_path / "sys" / "devices" / "system" / "node" / f"node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cores + "\n")
    for address, node in (("0000:c1:00.0", 3), ("0000:02:00.0", 1)):
        folder = tmp_path / "sys" / "bus" / "pci" / "devices" / address
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{node}\n")
    (tmp_path / "npu-smi").write_text(f'#!/bin/sh\ncat "{tmp_path}/${{2:-cards}}$3" 2> /dev/null\n')
    (tmp_path / "npu-smi").chmod(0o755)
    (tmp_path / "davinci0").touch()
    (tmp_path / "-ttopo").write_text(TOPOLOGY)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(host_device, "DEVICE_FILES", str(tmp_path / "davinci*"))
    monkeypatch.setattr(host_device, "_installed_vendor_packages", lambda: [host_device.VENDOR_PACKAGE])
    return tmp_path


@pytest.mark.parametrize(
    "devices,wanted",
    [
        ([0, 1, 2], [((8, 9), 2), ((10, 11), 2), ((0, 1, 2, 3, 16, 17, 18, 19), 0)]),
        ([1, 2], [((8, 9, 10, 11), 2), ((0, 1, 2, 3, 16, 17, 18, 19), 0)]),
        ([2, 1, 0], [((0, 1, 2, 3, 16, 17, 18, 19), 0), ((8, 9), 2), ((10, 11), 2)]),
    ],
)
def test_ranks_get_the_processors_near_their_devices(
    devices: Sequence[int], wanted: list[tuple[tuple[int, ...], int]], host: pathlib.Path
) -> None:
    assert share_processors(ALL, devices, str(host)) == wanted


def test_a_rank_uses_only_processors_of_the_launcher(host: pathlib.Path) -> None:
    assert share_processors([2, 3, 9, 10], [0, 2], str(host)) == [((9, 10), 2), ((2, 3), 0)]


@pytest.mark.parametrize("devices", [[0, 7], [0, 1]], ids=["an unknown device", "a device without processors"])
def test_even_shares_go_from_node_to_node(devices: list[int], host: pathlib.Path) -> None:
    available = [core for core in ALL if core not in range(8, 12)]
    half = ((0, 1, 2, 3, 16, 17, 18, 19, 4, 5), (6, 7, 20, 21, 22, 23, 12, 13, 14, 15))
    assert share_processors(available, devices, str(host)) == [Share(tuple(sorted(cores))) for cores in half]
    assert share_processors(ALL, range(4), str(host))[0] == ((0, 1, 2, 3, 16, 17), 0)


@pytest.mark.parametrize("numbers,devices", [(("Phy-ID", "4", "5"), [4, 5]), (("      ", " ", " "), [0, 1])])
def test_the_pci_bus_knows_the_node_of_a_device(
    numbers: tuple[str, str, str], devices: list[int], host: pathlib.Path
) -> None:
    (host / "-ttopo").unlink()
    (host / "cards").write_text(CARDS.format(phy=numbers[0], first=numbers[1], second=numbers[2]))
    assert share_processors(ALL, devices, str(host)) == [((12, 13, 14, 15), 3), ((4, 5, 6, 7, 20, 21, 22, 23), 1)]


def test_ranks_without_a_card_get_even_shares(host: pathlib.Path) -> None:
    (host / "davinci0").unlink()
    assert [len(cores) for cores, _ in share_processors(ALL, [0, 1, 2], str(host))] == [8, 8, 8]


def test_the_shell_line_binds_memory_and_processors() -> None:
    (made,) = rank_processes([RankSlot(0, 0)], 1, ["a"], "j", "logs", shares=[Share((4, 5), 1)], environ={})
    assert " numactl --preferred=1 taskset -c 4,5 a >> logs/rank_0.log" in made.shell_command()


def test_the_system_knows_the_call_that_prefers_memory() -> None:
    """A node that does not exist is refused as an invalid argument, unless a container forbids the call."""
    code = (
        "import ctypes\nfrom npu_shim._host import numa\n"
        "print(numa.try_prefer_memory_of_node(0), open('/proc/self/numa_maps').read().count('prefer:0'))\n"
        "print(numa.try_prefer_memory_of_node(1000), ctypes.get_errno())"
    )
    lines = subprocess.check_output([sys.executable, "-c", code], universal_newlines=True).splitlines()
    worked, mapped = lines[0].split()
    assert (worked == "True") == (int(mapped) > 0)
    assert lines[1].startswith("False")
    assert numa.cpus_of_nodes() or not os.path.exists("/sys/devices/system/node")
