"""The memory that the ranks of a job need on this host."""

from __future__ import annotations

import re

# The share of a rank of samples/digits_session in the memory of its host, while a new process trains it. Large models
# need more, forked ranks less.
RANK_BYTES = 300 << 20
_SIZE = re.compile(r"^([^:\n]+):[ \t]+(\d+)[ \t]*(kB)?$", re.MULTILINE)


def memory_warning(ranks: int, available: int | None = None) -> str | None:
    """Return a warning if the ranks probably need more memory than this host has.

    Args:
        ranks: number of ranks on this host.
        available: bytes that processes can get; those of this host when None.
    Returns:
        The warning; None if the memory suffices, or its size is unknown.
    """
    available = read_meminfo().get("MemAvailable") if available is None else available
    needed = ranks * RANK_BYTES
    if available is None or needed <= available:
        return None
    return (
        f"warning: {ranks} ranks of a small model need about {needed / 1e9:.0f} GB, and {available / 1e9:.0f} GB are "
        f"free. Use a table with at most {max(1, available // RANK_BYTES)} ranks, or a host with more memory."
    )


def read_meminfo(path: str = "/proc/meminfo") -> dict[str, int]:
    """Return the sizes that the kernel reports, in bytes; nothing without the file."""
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            rows = _SIZE.findall(stream.read())
    except OSError:
        return {}
    return {name: int(size) * (1024 if unit else 1) for name, size, unit in rows}
