"""What collectives are, whatever carries them: kinds, types, reductions, what ranks compare, and errors.

An engine brings a ``Members`` for each group of ranks; ``Group`` is what is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, RankTaken, Stalled
    from npu_shim.distributed.collectives.op_key import LABEL
    from npu_shim.distributed.collectives.process_group import Group
    from npu_shim.distributed.collectives.reductions import BFLOAT16, REDUCTIONS
else:
    __getattr__, __dir__ = _lazy_names(
        __name__,
        {
            "npu_shim.distributed.collectives.errors": "CollectiveError Mismatch PeerLost RankTaken Stalled",
            "npu_shim.distributed.collectives.process_group": "Group",
            "npu_shim.distributed.collectives.op_key": "LABEL",
            "npu_shim.distributed.collectives.reductions": "BFLOAT16 REDUCTIONS",
        },
    )

__all__ = [
    "BFLOAT16",
    "LABEL",
    "REDUCTIONS",
    "CollectiveError",
    "Group",
    "Mismatch",
    "PeerLost",
    "RankTaken",
    "Stalled",
]
