"""Processors and memory of this machine that this process may use."""

from __future__ import annotations

import contextlib
import os

from npu_shim.launching.host_memory import read_meminfo

_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNLIMITED = 1 << 60  # the kernel's value for "no limit"


def host_facts(root: str = "/") -> dict[str, int | None]:
    """Return the numbers of processors and bytes of memory. A value is None if the system does not give it.

    Args:
        root: root of the file system that describes the machine.
    """
    info = read_meminfo(os.path.join(root, "proc/meminfo"))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpus": os.cpu_count(),
        "cpus_usable": usable,
        "memory_bytes": info.get("MemTotal"),
        "memory_available_bytes": info.get("MemAvailable"),
        "memory_limit_bytes": _container_memory_limit(root),
        "shared_memory_free_bytes": _free_bytes(os.path.join(root, "dev/shm")),
    }


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
