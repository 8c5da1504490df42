"""What collectives are, whatever carries them: kinds, types, reductions, what ranks compare, and errors.

An engine brings a ``Members`` for each group of ranks; ``Group`` is what is called.
"""
from __future__ import annotations

from npu_shim.distributed.collectives.errors import CollectiveError, Mismatch, PeerLost, RankTaken, Stalled
from npu_shim.distributed.collectives.group import Group
from npu_shim.distributed.collectives.keys import LABEL
from npu_shim.distributed.collectives.reductions import BFLOAT16, REDUCTIONS

__all__ = ["BFLOAT16", "LABEL", "REDUCTIONS", "CollectiveError", "Group", "Mismatch", "PeerLost", "RankTaken", "Stalled"]
