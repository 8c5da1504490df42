"""The NUMA nodes of this host, and the processors that are near a device."""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import re
import subprocess
from typing import Sequence

_PREFERRED = 1  # MPOL_PREFERRED of set_mempolicy, whose number depends on the machine
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIST = r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*"
_AFFINITY = re.compile(rf"^\s*NPU(\d+)\s.*\s({_LIST})\s*$", re.MULTILINE)  # a row of npu-smi info -t topo
# Two rows of npu-smi info: number and name of a card; its chip, perhaps the number of the device, and its address
_BUS = re.compile(r"^\|\s*(\d+)\s+\S+\s*\|.*\n\|\s*\d+\s+(\d+)?\s*\|\s*([\dA-Fa-f]{4}:[\dA-Fa-f:.]+)", re.MULTILINE)


def cpus_of_nodes(root: str = "/") -> dict[int, frozenset[int]]:
    """Return the processors of each NUMA node.

    Args:
        root: root of the file system.
    """
    cores = {}
    for path in glob.glob(os.path.join(root, "sys/devices/system/node/node[0-9]*/cpulist")):
        with open(path, encoding="ascii") as stream:
            cores[int(re.findall(r"\d+", path)[-1])] = _parse_ranges(stream.read().strip())
    return cores


def cpus_near_devices(root: str = "/") -> dict[int, frozenset[int]]:
    """Return the processors near each device, as npu-smi or the PCI bus names them; empty if neither does.

    Args:
        root: root of the file system.
    """
    cores = {int(device): _parse_ranges(listed) for device, listed in _AFFINITY.findall(_npu_smi_output("-t", "topo"))}
    if cores:
        return cores
    here = cpus_of_nodes(root)
    for card, device, address in _BUS.findall(_npu_smi_output()):
        try:
            with open(
                os.path.join(root, "sys/bus/pci/devices", address.lower(), "numa_node"), encoding="ascii"
            ) as stream:
                near = here.get(int(stream.read()))
        except OSError:  # a container without this part of the bus
            near = None
        if near:
            cores[int(device or card)] = near
    return cores


def try_prefer_memory_of_node(node: int) -> bool:
    """Let this process, and those that it starts, take memory of a NUMA node. Return False if the system refuses it."""
    words = (ctypes.c_ulong * (node // 64 + 1))()
    words[node // 64] = 1 << node % 64
    number = _SET_MEMPOLICY.get(platform.machine())
    return number is not None and _LIBC.syscall(number, _PREFERRED, words, len(words) * 64 + 1) == 0


def _npu_smi_output(*options: str) -> str:
    """Return what ``npu-smi info`` prints; an empty text without it."""
    try:
        return subprocess.run(
            ["npu-smi", "info", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _parse_ranges(text: str) -> frozenset[int]:
    """Return the numbers in a list such as 0-3,8."""
    parts: list[Sequence[str]] = [part.split("-") for part in text.split(",") if part]
    return frozenset(number for part in parts for number in range(int(part[0]), int(part[-1]) + 1))
