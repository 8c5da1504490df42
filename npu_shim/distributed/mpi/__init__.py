"""The collective backend for the ranks of several hosts: MPI between hosts, shared memory within each.

::

    mpirun -np 4 --host a:2,b:2 python train.py
    backend = join(rank, size, job="train-7", servers=["a", "a", "b", "b"])
    total = backend.world.allreduce(gradients, "sum", key="gradients")

mpirun (Open MPI, MPICH) or srun starts the ranks, and mpi4py is the interface to
MPI. The first rank of a group on each host, its *leader*, exchanges messages with
the leaders of other hosts. The other ranks of a host share its memory only.

==============  ==================================================================
wire            MPI as one process uses it: messages, and the thread that owns MPI
span            the members of a group by host
order           the order of a group's collectives, on which the leaders agree
links           the data between the leaders within one collective
host_transport  the collectives: shared memory and links together
exchange        large reductions of hosts with one rank each
backend         this process as a rank of the job
==============  ==================================================================
"""

from __future__ import annotations

from npu_shim.distributed.mpi.backend import Backend, join_job

__all__ = ["Backend", "join_job"]
