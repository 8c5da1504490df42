"""The rank table of a job on the cards of this host alone, which need one to find each other."""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.ranktable import generate as ranktable_make, model as ranktable, writer as ranktable_write
from npu_shim.launching.plan import Seat

_THIS_HOST = "127.0.0.1"


def table_of_this_host(seats: Sequence[Seat]) -> str:
    """The text of a rank table, with the addresses that the host's hccn.conf has.

    Args:
        seats: the ranks, in order, and their devices.
    Raises:
        ValueError: there is no hccn.conf, or it lacks one of the devices.
    """
    path = ranktable_make.HCCN_CONF
    try:
        addresses = ranktable_make.read_hccn(ranktable.text_of(path), path)
    except OSError as error:
        raise ValueError(
            f"on cards {len(seats)} ranks need a rank table, by which the cards find each other, and it cannot be made "
            f"from {path}: {error.strerror}. Set the addresses with hccn_tool, or give --ranktable FILE instead of "
            "--ranks (npu-shim ranktable make writes one)."
        ) from error
    host = ranktable_make.Host(_THIS_HOST, tuple(seat.device for seat in seats))
    table, _ = ranktable_make.make([host], {_THIS_HOST: addresses})
    return ranktable_write.text(table)
