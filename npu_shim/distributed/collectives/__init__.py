"""Collective operations, independent of the backend: types, reductions, checks between ranks, and errors.

A backend provides a ``GroupBackend`` for each process group; callers use ``ProcessGroup``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._host.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, RankTaken, Stalled
    from npu_shim.distributed.collectives.op_key import LABEL
    from npu_shim.distributed.collectives.process_group import ProcessGroup
    from npu_shim.distributed.collectives.reductions import BFLOAT16, REDUCTIONS
else:
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "npu_shim.distributed.collectives.errors": "CollectiveError Mismatch PeerLost RankTaken Stalled",
            "npu_shim.distributed.collectives.process_group": "ProcessGroup",
            "npu_shim.distributed.collectives.op_key": "LABEL",
            "npu_shim.distributed.collectives.reductions": "BFLOAT16 REDUCTIONS",
        },
    )

__all__ = [
    "BFLOAT16",
    "LABEL",
    "REDUCTIONS",
    "CollectiveError",
    "Mismatch",
    "PeerLost",
    "ProcessGroup",
    "RankTaken",
    "Stalled",
]
