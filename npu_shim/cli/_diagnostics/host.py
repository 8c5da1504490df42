"""Processors and memory of this machine that this process may use."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from npu_shim.launching.host_memory import read_meminfo

_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNLIMITED = 1 << 60  # the kernel's value for "no limit"


@dataclass(frozen=True)
class HostFacts:
    """Numbers of processors and bytes of memory, None if the system does not give them."""

    cpus: int | None
    cpus_usable: int | None
    memory_bytes: int | None
    memory_available_bytes: int | None
    memory_limit_bytes: int | None
    shared_memory_free_bytes: int | None


def host_facts(root: str = "/") -> HostFacts:
    """Return the processors and the memory of this machine.

    Args:
        root: root of the file system that describes the machine.
    """
    info = read_meminfo(os.path.join(root, "proc/meminfo"))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return HostFacts(
        cpus=os.cpu_count(),
        cpus_usable=usable,
        memory_bytes=info.get("MemTotal"),
        memory_available_bytes=info.get("MemAvailable"),
        memory_limit_bytes=_container_memory_limit(root),
        shared_memory_free_bytes=_free_bytes(os.path.join(root, "dev/shm")),
    )


def _container_memory_limit(root: str) -> int | None:
    """Return the memory limit of the container, None if there is none."""
    for path in _LIMITS:
        with contextlib.suppress(OSError), open(os.path.join(root, path), encoding="ascii", errors="replace") as stream:
            text = stream.read().strip()
            if text.isdigit() and int(text) < _UNLIMITED:
                return int(text)
    return None


def _free_bytes(folder: str) -> int | None:
    try:
        state = os.statvfs(folder)
    except OSError:
        return None
    return state.f_bavail * state.f_frsize
