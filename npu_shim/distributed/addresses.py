"""Network addresses of the ranks, free ports, and the addresses of this host."""

from __future__ import annotations

import random
import socket

from npu_shim.distributed.world import THIS_HOST, World

_MIN_PORT, _MAX_PORT = 20000, 32000  # below the ephemeral ports


def addresses(here: World, base_port: int) -> list[str]:
    """Return 'host:port' of each rank. Ports count up from base_port, so several hosts may be one machine.

    Args:
        here: the ranks.
        base_port: port of rank 0.
    """
    hosts = [THIS_HOST] * here.size if here.is_one_host else list(here.addresses)
    return [
        f"[{host}]:{base_port + rank}" if ":" in host else f"{host}:{base_port + rank}"
        for rank, host in enumerate(hosts)
    ]


def free_base_port(count: int) -> int:
    """Return the first of ``count`` consecutive ports of this host that are free now.

    Raises:
        OSError: there are none.
    """
    for _ in range(100):
        base = random.randrange(_MIN_PORT, _MAX_PORT - count)
        if all(map(_is_free, range(base, base + count))):
            return base
    raise OSError(f"no {count} consecutive ports from {_MIN_PORT} to {_MAX_PORT} are free on this host.")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def is_this_host(address: str) -> bool:
    """Return True if an address belongs to this host: its name, or an address that can be bound.

    Args:
        address: IPv4, IPv6, or a name.
    """
    if address == socket.gethostname():
        return True
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind((address, 0))
                return True
        except (OSError, UnicodeError):  # another family, no address, or the address of another host
            continue
    return False
