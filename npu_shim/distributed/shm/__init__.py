"""Collectives among the processes of one host, through shared memory, with NumPy and nothing else.

::

    engine = join(rank, size, job="train-7")
    total = engine.world.allreduce(gradients, "sum", key="gradients")

It needs no network and no TensorFlow. A rank that dies, ends or stalls makes the
others raise an error that names it.
"""

from __future__ import annotations

from npu_shim.distributed.shm.backend import Engine, join

__all__ = ["Engine", "join"]
