"""This process's connection to the other ranks, made when the first collective needs it.

The ranks of one host exchange data through shared memory, those of several
through TensorFlow's servers; NPU_SHIM_COLLECTIVES chooses otherwise. The
connection is kept for the life of the process, as the process is one rank and no
other.
"""

from __future__ import annotations

import threading
from typing import Any, Sequence

from npu_shim import _env
from npu_shim.distributed import collectives
from npu_shim.distributed.world import WORLD, World, world

_joining = threading.Lock()
_engine: Any | None = None


def engine() -> Any:
    """The connection, an Engine of shm or of servers; the first call waits until all ranks have come.

    Raises:
        ValueError: NPU_SHIM_COLLECTIVES=shm, and the ranks are on several hosts.
        collectives.CollectiveError: they did not meet.
    """
    global _engine
    with _joining:
        if _engine is None:
            here, env = world(), _env.read()
            common: dict[str, Any] = {
                "connect_timeout_s": env.connect_timeout_s,
                "stall_timeout_s": env.collective_timeout_s,
                "world_name": WORLD,
                "kept_bytes": None if env.memory == "kept" else 0,
            }
            if carrier(here, env) == "shm":
                from npu_shim.distributed import shm

                _engine = shm.join(here.rank, here.size, env.job_id, **common)
            else:
                from npu_shim.distributed import servers
                from npu_shim.distributed.addresses import addresses

                _engine = servers.join(
                    here.rank, here.size, env.job_id, addresses=addresses(here, env.base_port), **common
                )
        return _engine


def carrier(here: World, env: _env.Environment) -> str:
    """What carries collectives: 'shm' or 'tensorflow'.

    Raises:
        ValueError: NPU_SHIM_COLLECTIVES=shm, and the ranks are on several hosts.
    """
    if env.collectives == "auto":
        return "shm" if here.is_one_host else "tensorflow"
    if env.collectives == "shm" and not here.is_one_host:
        raise ValueError(
            f"NPU_SHIM_COLLECTIVES='shm' is not allowed for the {here.size} ranks of {here.source}, which are on "
            f"{len(here.server_ids)} hosts: they share no memory. Unset it, or name a rank table with one server."
        )
    return env.collectives


def group(name: str, ranks: Sequence[int]) -> collectives.Group:
    """The group of some ranks; its first collective waits until all its members have come.

    Args:
        name: the group's.
        ranks: world ranks of its members, ascending.
    """
    joined = engine()
    return joined.world if name == WORLD else joined.group(name, ranks)
