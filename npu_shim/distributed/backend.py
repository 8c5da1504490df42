"""This process's collective backend, connected when the first collective needs it.

The ranks of one host exchange data through shared memory, the ranks of several
hosts over MPI between the hosts. The connection lasts until the process ends.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Sequence, Union

from npu_shim._host import host_env
from npu_shim.distributed.world import WORLD, World, world

if TYPE_CHECKING:
    from npu_shim.distributed import mpi, shm
    from npu_shim.distributed.collectives.process_group import ProcessGroup

    Backend = Union[shm.Backend, mpi.Backend]

_connecting = threading.Lock()
_backend: Backend | None = None


def connected_backend() -> Backend:
    """Return the backend of this process; the first call waits until all ranks have joined.

    Raises:
        CollectiveError: the rendezvous failed.
    """
    global _backend
    with _connecting:
        if _backend is None:
            _backend = _join_job(world(), host_env.read_environment())
        return _backend


def _join_job(world: World, env: host_env.Environment) -> Backend:
    from npu_shim._tensorflow import script_frames

    pool_bytes = None if env.memory == "kept" else 0
    if world.is_one_host or env.rehearsal:
        from npu_shim.distributed import shm

        # A process alone shares nothing, so that several of them may run at the same time.
        return shm.join_job(
            world.rank,
            world.size,
            env.job_id if world.size > 1 else f"{env.job_id}-{secrets.token_hex(4)}",
            connect_timeout_s=env.connect_timeout_s,
            stall_timeout_s=env.collective_timeout_s,
            world_name=WORLD,
            pool_bytes=pool_bytes,
            where=script_frames.main_thread_line_text if world.size > 1 else None,
        )
    from npu_shim.distributed import mpi

    return mpi.join_job(
        world.rank,
        world.size,
        env.job_id,
        servers=world.servers,
        connect_timeout_s=env.connect_timeout_s,
        stall_timeout_s=env.collective_timeout_s,
        world_name=WORLD,
        pool_bytes=pool_bytes,
        where=script_frames.main_thread_line_text,
    )


def process_group(name: str, ranks: Sequence[int]) -> ProcessGroup:
    """Return the process group of some ranks; its first collective waits until all members have joined.

    Args:
        name: name of the group.
        ranks: world ranks of its members, ascending.
    """
    backend = connected_backend()
    return backend.world if name == WORLD else backend.group(name, ranks)
