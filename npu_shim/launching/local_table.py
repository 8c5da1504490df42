"""The rank table of a job on the NPUs of this host; NPUs need one to find each other."""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed.ranktable import generate, reader, writer
from npu_shim.launching.plan import RankSlot

_THIS_HOST = "127.0.0.1"


def local_table_text(slots: Sequence[RankSlot]) -> str:
    """Return the text of a rank table with the device addresses of this host's hccn.conf.

    Args:
        slots: the ranks, in order, and their devices.
    Raises:
        ValueError: hccn.conf does not exist, or lacks one of the devices.
    """
    path = generate.HCCN_CONF
    try:
        addresses = generate.read_hccn(reader.read_text(path), path)
    except OSError as error:
        raise ValueError(
            f"{len(slots)} ranks on NPUs need a rank table, which cannot be generated from {path}: {error.strerror}. "
            "Set "
            "the addresses with hccn_tool, or pass --ranktable FILE instead of --ranks (npu-shim ranktable make "
            "creates "
            "one)."
        ) from error
    host = generate.Host(_THIS_HOST, tuple(slot.device for slot in slots))
    table, _ = generate.generate([host], {_THIS_HOST: addresses})
    return writer.render(table)
