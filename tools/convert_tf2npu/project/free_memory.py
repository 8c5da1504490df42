"""The number of nodes of trees that a process may keep, by the memory that the machine has free.

A module that was dropped is parsed and analysed again for the next question about it. In a project of 550,000 lines
that takes half the time.
"""

from __future__ import annotations

import re

LEAST_NODES = 300_000  # on any machine
_MOST_NODES = 1_600_000  # a gigabyte
_BYTES_OF_NODE = 640  # with the analysis of it
_SHARE = 4  # one part in so many is for all processes together
_AVAILABLE = re.compile(r"^MemAvailable:\s*(\d+) kB", re.MULTILINE)
# Of a container, in the two versions of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def nodes_that_fit(processes: int) -> int:
    """Return the number of nodes for each of some processes; the least number if the memory is not known."""
    return nodes_for_free_bytes(free_bytes(), processes)


def nodes_for_free_bytes(free: int, processes: int) -> int:
    """Return the number of nodes for each of some processes in so many free bytes."""
    return min(max(free // _SHARE // max(processes, 1) // _BYTES_OF_NODE, LEAST_NODES), _MOST_NODES)


def free_bytes() -> int:
    """Return the bytes that Linux has free for programs, within the limit of a container; 0 if that is not known."""
    free = _AVAILABLE.search(_read_system_file("/proc/meminfo"))
    limits = [int(text) for text in map(str.strip, map(_read_system_file, _LIMITS)) if text.isdigit()]
    return min([int(free.group(1)) * 1024, *limits]) if free else 0


def _read_system_file(path: str) -> str:
    """Return the text of a file of the system; nothing where there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
