"""Whether an address is one of this host's."""

from __future__ import annotations

import socket


def is_this_host(address: str) -> bool:
    """True for this host's name, and for what leads to one of its own addresses: only such a one can be bound.

    Args:
        address: IPv4, IPv6, or a name.
    """
    if address == socket.gethostname():
        return True
    for kind in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(kind, socket.SOCK_DGRAM) as probe:
                probe.bind((address, 0))
                return True
        except (OSError, UnicodeError):  # of the other kind, no address, or somebody else's
            continue
    return False
