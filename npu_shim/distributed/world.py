"""The ranks of this job as one frozen record, found by a pure function from the environment.

Four ways are understood, as the vendor's runtime has them: a rank table and
this process's place in it; RANK_SIZE and RANK_ID; a master node that collects
the workers (``CM_*``); none of these, which is one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Mapping

from npu_shim import _env

if TYPE_CHECKING:
    from npu_shim.distributed.ranktable import model as ranktable

WORLD = "hccl_world_group"
THIS_HOST = "127.0.0.1"  # the server of all ranks where nothing says on which they run


@dataclass(frozen=True)
class World:
    """All ranks of the job, and which of them this process is.

    ``servers`` has the server_id and ``addresses`` the address of the host of
    each rank. ``device_id`` is this rank's device. ``source`` names what says
    all this. ``table`` is None where no rank table does.
    """

    rank: int
    size: int
    servers: tuple[str, ...]
    addresses: tuple[str, ...]
    device_id: int
    source: str
    table: ranktable.RankTable | None = None

    @property
    def is_distributed(self) -> bool:
        """True when the job has more than one rank."""
        return self.size > 1

    @property
    def server_ids(self) -> tuple[str, ...]:
        """The servers, each once, in the order of their first rank."""
        return tuple(dict.fromkeys(self.servers))

    @property
    def is_one_host(self) -> bool:
        """True when all ranks run on one server."""
        return len(self.server_ids) == 1

    @property
    def local_ranks(self) -> tuple[int, ...]:
        """The ranks on this rank's server, ascending."""
        return self.ranks_beside(self.rank)

    @property
    def local_rank(self) -> int:
        """This rank's number among those on its server."""
        return self.local_ranks.index(self.rank)

    @property
    def local_size(self) -> int:
        """Number of ranks on this rank's server."""
        return len(self.local_ranks)

    def ranks_beside(self, rank: int) -> tuple[int, ...]:
        """The ranks on the server of a rank, itself included, ascending."""
        return tuple(r for r, server in enumerate(self.servers) if server == self.servers[rank])


def world(environ: Mapping[str, str] | None = None) -> World:
    """Finds the ranks of this job.

    Args:
        environ: where to read; ``os.environ`` when None.
    Returns:
        A World.
    Raises:
        ValueError: variables contradict each other or the rank table; the text names variable, value and file.
    """
    env = _env.read(environ)
    if env.rank_table_file is not None:
        table = _table(env.rank_table_file, env.rank_size)
        if table is not None:
            return _in_table(env, table)
        return _without_table(0, 1, env.device_id, "RANK_SIZE")
    assert env.rank_size is not None  # only a rank table leaves it open
    if env.rank_id is None:
        return _at_master(env, env.rank_size)
    source = "the defaults of one process" if "RANK_SIZE" in env.defaulted else "RANK_SIZE"
    return _without_table(env.rank_id, env.rank_size, env.device_id, source)


def world_size(environ: Mapping[str, str] | None = None) -> int:
    """Number of ranks, also where only the cards can say which of them this process is.

    Args:
        environ: where to read; ``os.environ`` when None.
    Raises:
        ValueError: variables contradict each other or the rank table.
    """
    env = _env.read(environ)
    table = _table(env.rank_table_file, env.rank_size) if env.rank_table_file is not None else None
    return table.size if table is not None else env.rank_size or 1


def _without_table(rank: int, size: int, device_id: int, source: str) -> World:
    return World(rank, size, (THIS_HOST,) * size, (THIS_HOST,) * size, device_id, source)


def _table(path: str, rank_size: int | None) -> ranktable.RankTable | None:
    from npu_shim.distributed.ranktable import model as ranktable

    try:
        table = ranktable.read(path)
    except (OSError, ranktable.RankTableError) as error:
        if rank_size == 1:
            return None  # one process needs no table, and a script may carry the path of another machine
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ValueError(
            f"RANK_TABLE_FILE={path!r} cannot be used: {reason}. Correct it; npu-shim ranktable make writes one."
        ) from error
    if table.status != ranktable.COMPLETED:
        raise ValueError(
            f'RANK_TABLE_FILE={path!r} has "status": {table.status!r}, but only a table that is '
            f"{ranktable.COMPLETED!r} can be used. Start the job when whoever writes it is done."
        )
    if rank_size is not None and rank_size != table.size:
        raise ValueError(
            f"RANK_SIZE={rank_size} contradicts RANK_TABLE_FILE={path!r}, which names {table.size} ranks. Export "
            f"RANK_SIZE={table.size}, unset it, or name the table of this job."
        )
    return table


def _in_table(env: _env.Environment, table: ranktable.RankTable) -> World:
    rank = _own_rank(env, table)
    placed = table.placements()
    return World(
        rank,
        table.size,
        tuple(server.server_id for server, _ in placed),
        tuple(server.address for server, _ in placed),
        placed[rank][1].device_id,
        f"RANK_TABLE_FILE={env.rank_table_file}",
        table,
    )


def _own_rank(env: _env.Environment, table: ranktable.RankTable) -> int:
    path = env.rank_table_file
    if env.rank_id is not None:
        by_pod = _in_pod_of_number(env, table)
        if by_pod is not None:
            return by_pod
        if env.rank_id >= table.size:
            raise ValueError(
                f"RANK_ID={env.rank_id} is not in RANK_TABLE_FILE={path!r}, which names ranks 0 to {table.size - 1}. "
                "Export the RANK_ID of one of them."
            )
        _check_pod(env, table, env.rank_id)
        return env.rank_id
    if env.pod_name is not None:
        return _rank_of_pod(env, table)
    if table.size == 1:
        return 0
    raise ValueError(
        f"RANK_TABLE_FILE={path!r} names {table.size} ranks and needs RANK_ID, which is not set: export RANK_ID as "
        f"this process's number, 0 to {table.size - 1}."
    )


def _in_pod_of_number(env: _env.Environment, table: ranktable.RankTable) -> int | None:
    """The rank where RANK_ID is the name of a pod, though a number: all processes of the pod then have the same."""
    if "ASCEND_DEVICE_ID" in env.defaulted:
        return None
    placed = table.placements()
    if env.rank_id is not None and env.rank_id < len(placed) and placed[env.rank_id][1].device_id == env.device_id:
        return None
    found = [
        device.rank
        for server, device in placed
        if server.pod_name == str(env.rank_id) and device.device_id == env.device_id
    ]
    return found[0] if len(found) == 1 else None


def _check_pod(env: _env.Environment, table: ranktable.RankTable, rank: int) -> None:
    pod_name = table.placements()[rank][0].pod_name
    if env.pod_name in [server.pod_name for server in table.servers if server.pod_name] and env.pod_name != pod_name:
        raise ValueError(
            f"POD_NAME={env.pod_name!r} and RANK_ID={rank} contradict each other: in RANK_TABLE_FILE="
            f"{env.rank_table_file!r} rank {rank} is in the pod {pod_name!r}. Unset one of them."
        )


def _rank_of_pod(env: _env.Environment, table: ranktable.RankTable) -> int:
    """Old launch scripts name the pod and the device instead of the rank."""
    path, said = env.rank_table_file, f"{env.pod_variable}={env.pod_name!r}"
    pods = [server for server in table.servers if server.pod_name == env.pod_name]
    if not pods:
        names = ", ".join(repr(s.pod_name) for s in table.servers if s.pod_name is not None) or "no pods"
        raise ValueError(
            f"{said} is not in RANK_TABLE_FILE={path!r}, which names {names}. Export RANK_ID as this process's number, "
            f"0 to {table.size - 1}, or {env.pod_variable} as one of its pods."
        )
    devices = [device for pod in pods for device in pod.devices]
    if len(devices) == 1:
        return devices[0].rank
    of_process = [device.rank for device in devices if device.device_id == env.device_id]
    ids = ", ".join(str(device.device_id) for device in devices)
    if "ASCEND_DEVICE_ID" in env.defaulted or len(of_process) != 1:
        raise ValueError(
            f"{said} in RANK_TABLE_FILE={path!r} has devices {ids}, and this process's is "
            f"{'not set' if 'ASCEND_DEVICE_ID' in env.defaulted else env.device_id}: export DEVICE_ID as one of them, "
            "or RANK_ID as this process's number."
        )
    return of_process[0]


def _at_master(env: _env.Environment, size: int) -> World:
    """Workers of one host are numbered by their device; those of several hosts not before they have met."""
    local = env.cm_worker_ip in (None, env.cm_chief_ip)
    if not local or "ASCEND_DEVICE_ID" in env.defaulted or env.device_id >= size:
        raise ValueError(
            f"CM_CHIEF_IP={env.cm_chief_ip!r} with CM_WORKER_SIZE={size} leaves it to the cards to number the ranks. "
            "Without cards that is known on one host only: there export ASCEND_DEVICE_ID as this process's number, 0 "
            f"to {size - 1}, and CM_WORKER_IP as CM_CHIEF_IP. For several hosts unset the CM_* variables and export "
            "RANK_TABLE_FILE (npu-shim ranktable make writes one) and RANK_ID."
        )
    return World(
        env.device_id,
        size,
        (env.cm_chief_ip or THIS_HOST,) * size,
        (env.cm_chief_ip or THIS_HOST,) * size,
        env.device_id,
        "CM_CHIEF_IP",
    )
