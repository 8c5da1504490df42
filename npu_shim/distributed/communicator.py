"""This process's connection to the other ranks, made when the first collective needs it.

The ranks of one host exchange data through shared memory. The connection is
kept for the life of the process, as the process is one rank and no other.
"""
from __future__ import annotations

import threading
from typing import Optional, Sequence

from npu_shim import _env
from npu_shim.distributed import collectives, shm
from npu_shim.distributed.world import WORLD, world

_joining = threading.Lock()
_engine: Optional[shm.Engine] = None


def engine() -> shm.Engine:
    """The connection; the first call waits until all ranks have come.

    Raises:
        RuntimeError: the ranks are on several hosts.
        collectives.CollectiveError: they did not meet.
    """
    global _engine
    with _joining:
        if _engine is None:
            here, env = world(), _env.read()
            if not here.is_one_host:
                raise RuntimeError(
                    f"the {here.size} ranks of {here.source} are on {len(here.server_ids)} hosts, but collectives "
                    "without cards work among the processes of one host only. Name a rank table with one server.")
            _engine = shm.join(here.rank, here.size, env.job_id, connect_timeout_s=env.connect_timeout_s,
                               stall_timeout_s=env.collective_timeout_s, world_name=WORLD)
        return _engine


def group(name: str, ranks: Sequence[int]) -> collectives.Group:
    """The group of some ranks; the first call waits until all its members have come.

    Args:
        name: the group's.
        ranks: world ranks of its members, ascending.
    """
    joined = engine()
    return joined.world if name == WORLD else joined.group(name, ranks)
