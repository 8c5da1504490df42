"""The rank table of a job on the NPUs of this host; NPUs need one to find each other."""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim.distributed.ranktable import generate, reader, writer
from npu_shim.distributed.ranktable.model import RANK_LIST
from npu_shim.distributed.ranktable.products import dialect_of
from npu_shim.launching.plan import RankSlot

_THIS_HOST = "127.0.0.1"


def local_table_text(slots: Sequence[RankSlot]) -> str:
    """Return the text of a rank table, in the version of this host's NPUs, with the addresses that its files have.

    Args:
        slots: the ranks, in order, and their devices.
    Raises:
        ValueError: hccn.conf (hccl_rootinfo.json for an A5) does not exist, or lacks one of the devices.
    """
    dialect = dialect_of(host_device.product())
    source = generate.source(dialect)
    try:
        devices = source.parse(reader.read_text(source.path), source.path)
    except OSError as error:
        fix = "Write it with the tool of the platform" if dialect == RANK_LIST else "Set the addresses with hccn_tool"
        raise ValueError(
            f"{len(slots)} ranks on NPUs need a rank table, which cannot be generated from {source.path}: "
            f"{error.strerror}. {fix}, or pass --ranktable FILE instead of --ranks (npu-shim ranktable make creates "
            "one)."
        ) from error
    host = generate.Host(_THIS_HOST, tuple(slot.device for slot in slots))
    table, _ = source.generate([host], {_THIS_HOST: devices})
    return writer.render(table)
