"""Where the servers of the ranks listen."""

from __future__ import annotations

import random
import socket

from npu_shim.distributed.world import THIS_HOST, World

_LOW, _HIGH = 20000, 32000  # below the ports that systems give out by themselves


def addresses(here: World, base_port: int) -> list[str]:
    """'host:port' of each rank; ports count up from base_port, so that hosts may be one machine.

    Args:
        here: the ranks. The hosts of several are as the rank table has them.
        base_port: that of rank 0.
    """
    hosts = [THIS_HOST] * here.size if here.is_one_host else list(here.addresses)
    return [
        f"[{host}]:{base_port + rank}" if ":" in host else f"{host}:{base_port + rank}"
        for rank, host in enumerate(hosts)
    ]


def free_base_port(count: int) -> int:
    """The first of ``count`` neighbouring ports of this host that nobody uses now.

    Raises:
        OSError: there are none.
    """
    for _ in range(100):
        base = random.randrange(_LOW, _HIGH - count)
        if all(map(_is_free, range(base, base + count))):
            return base
    raise OSError(f"no {count} neighbouring ports from {_LOW} to {_HIGH} are free on this host.")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
