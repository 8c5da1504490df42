"""Collectives among the processes of one host, through shared memory, with NumPy and nothing else.

::

    engine = join(rank, size, job="train-7")
    total = engine.world.allreduce(gradients, "sum", key="gradients")

It needs no network and no TensorFlow. A rank that dies, ends or stalls makes the
others raise an error that names it.
"""
from __future__ import annotations

from npu_shim.distributed.shm.engine import CONNECT_TIMEOUT_S, STALL_TIMEOUT_S, Engine, join
from npu_shim.distributed.shm.errors import CollectiveError, Mismatch, PeerLost, RankTaken, Stalled
from npu_shim.distributed.shm.group import Group
from npu_shim.distributed.shm.lanes import LABEL
from npu_shim.distributed.shm.reductions import BFLOAT16, REDUCTIONS

__all__ = ["BFLOAT16", "CONNECT_TIMEOUT_S", "REDUCTIONS", "STALL_TIMEOUT_S", "LABEL", "CollectiveError", "Engine", "Group",
           "Mismatch", "PeerLost", "RankTaken", "Stalled", "join"]
