"""The addresses of this host."""

from __future__ import annotations

import socket


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
