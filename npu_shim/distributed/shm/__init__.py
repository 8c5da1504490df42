"""The collective backend for the processes of one host: shared memory, with NumPy only.

::

    backend = join(rank, size, job="train-7")
    total = backend.world.allreduce(gradients, "sum", key="gradients")

It needs no network and no TensorFlow. If a rank dies, exits or stalls, the others
raise an error that names it.
"""

from __future__ import annotations

from npu_shim.distributed.shm.backend import Backend, join_job

__all__ = ["Backend", "join_job"]
