"""The ranks of this job as one frozen record, a pure function of the environment.

There are four ways to describe a job, as in the vendor's runtime: a rank table and
the rank of this process; RANK_SIZE and RANK_ID; a master node that collects the
workers (``CM_*``); none of these, for one process. mpirun and srun give rank, size
and place on the host.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Mapping

from npu_shim._host import host_env

if TYPE_CHECKING:
    from npu_shim.distributed.ranktable.model import RankTable

WORLD = "hccl_world_group"
THIS_HOST = "127.0.0.1"  # the server of all ranks without a rank table


@dataclass(frozen=True)
class World:
    """All ranks of the job, and the rank of this process.

    ``servers`` has the server_id of each rank.
    ``device_id`` is the device of this rank. ``source`` names the variable that
    describes the job. ``table`` is None without a rank table.
    """

    rank: int
    size: int
    servers: tuple[str, ...]
    device_id: int
    source: str
    table: RankTable | None = None

    @property
    def is_distributed(self) -> bool:
        """Return True if the job has more than one rank."""
        return self.size > 1

    @property
    def server_ids(self) -> tuple[str, ...]:
        """Return the servers, each once, in the order of their first rank."""
        return tuple(dict.fromkeys(self.servers))

    @property
    def is_one_host(self) -> bool:
        """Return True if all ranks run on one server."""
        return len(self.server_ids) == 1

    @property
    def local_ranks(self) -> tuple[int, ...]:
        """Return the ranks on the server of this rank, ascending."""
        return self.ranks_on_server_of(self.rank)

    @property
    def local_rank(self) -> int:
        """Return the number of this rank among the ranks on its server."""
        return self.local_ranks.index(self.rank)

    @property
    def local_size(self) -> int:
        """Return the number of ranks on the server of this rank."""
        return len(self.local_ranks)

    @property
    def local_devices(self) -> tuple[int, ...]:
        """Return the devices of the ranks on the server of this rank; without a rank table, counted from 0."""
        if self.table is None:
            return tuple(range(self.local_size))
        devices = {device.rank: device.device_id for server in self.table.servers for device in server.devices}
        return tuple(devices[rank] for rank in self.local_ranks)

    def rank_folder(self, folder: str) -> str:
        """Return the folder of this rank in that of the job; with one rank, that of the job."""
        return os.path.join(folder, f"rank_{self.rank}") if self.is_distributed else folder

    def ranks_on_server_of(self, rank: int) -> tuple[int, ...]:
        """Return the ranks on the server of a rank, including that rank, ascending."""
        return tuple(r for r, server in enumerate(self.servers) if server == self.servers[rank])


def world(environ: Mapping[str, str] | None = None) -> World:
    """Find the ranks of this job.

    Args:
        environ: the variables; those of this process when None.
    Returns:
        A World.
    Raises:
        ValueError: variables contradict each other or the rank table; the text names variable, value and file.
    """
    env = host_env.read_environment(environ)
    if env.rank_table_file is not None:
        table = _read_rank_table(env)
        if table is not None:
            return _world_of_table(env, table)
        return _world_without_table(0, 1, env.device_id, "RANK_SIZE")
    assert env.rank_size is not None  # it is None only with a rank table
    if env.rank_id is None:
        return _world_at_master(env, env.rank_size)
    source = "the defaults of one process" if "RANK_SIZE" in env.defaulted else env.size_variable
    if env.placement is not None:
        from npu_shim.distributed.launched_hosts import host_names_of_ranks

        given = host_env.process_environ() if environ is None else environ
        _, local_rank, local_size = env.placement
        servers = host_names_of_ranks(given, env.rank_id, env.rank_size, local_rank, local_size)
        return World(env.rank_id, env.rank_size, servers, env.device_id, source)
    return _world_without_table(env.rank_id, env.rank_size, env.device_id, source)


def world_size(environ: Mapping[str, str] | None = None) -> int:
    """Return the number of ranks, even if only the NPUs know the rank of this process.

    Args:
        environ: the variables; those of this process when None.
    Raises:
        ValueError: variables contradict each other or the rank table.
    """
    env = host_env.read_environment(environ)
    table = _read_rank_table(env) if env.rank_table_file is not None else None
    return table.size if table is not None else env.rank_size or 1


def _world_without_table(rank: int, size: int, device_id: int, source: str) -> World:
    return World(rank, size, (THIS_HOST,) * size, device_id, source)


def _read_rank_table(env: host_env.Environment) -> RankTable | None:
    from npu_shim.distributed.ranktable.model import COMPLETED, RankTableError
    from npu_shim.distributed.ranktable.reader import read_table

    path, rank_size = str(env.rank_table_file), env.rank_size
    try:
        table = read_table(path)
    except (OSError, RankTableError) as error:
        if rank_size == 1:
            return None  # one process needs no table, and the path may belong to another machine
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ValueError(
            f"RANK_TABLE_FILE={path!r} cannot be used: {reason}. Correct it, or create one with npu-shim ranktable "
            "make."
        ) from error
    if table.status != COMPLETED:
        raise ValueError(
            f'RANK_TABLE_FILE={path!r} has "status": {table.status!r}, not {COMPLETED!r}. Start the job when the table '
            "is complete."
        )
    if rank_size is not None and rank_size != table.size:
        fix = (
            f"Export RANK_SIZE={table.size}, unset it"
            if env.size_variable == "RANK_SIZE"
            else f"Start {table.size} ranks"
        )
        raise ValueError(
            f"{env.size_variable}={rank_size} contradicts RANK_TABLE_FILE={path!r}, which has {table.size} ranks. "
            f"{fix}, or use the rank table of this job."
        )
    return table


def _world_of_table(env: host_env.Environment, table: RankTable) -> World:
    rank = _own_rank(env, table)
    placed = table.placements()
    here = World(
        rank,
        table.size,
        tuple(server.server_id for server, _ in placed),
        placed[rank][1].device_id,
        f"RANK_TABLE_FILE={env.rank_table_file}",
        table,
    )
    _check_placement(env, table, here)
    return here


def _check_placement(env: host_env.Environment, table: RankTable, world: World) -> None:
    """Check that mpirun or srun started the rank on the host that the table has for it, as far as numbers show it."""
    from npu_shim.distributed.ranktable.model import LAB, SERVER_LIST

    place = env.placement
    if place is None or table.dialect not in (SERVER_LIST, LAB):
        return  # a pod, or a net instance of version 2.0, need not be a host
    if (place.local_rank, place.local_size) != (world.local_rank, world.local_size):
        raise ValueError(
            f"{place.variable}={place.local_rank} of {place.local_size} on this host contradicts "
            f"RANK_TABLE_FILE={env.rank_table_file!r}, in which rank {world.rank} is local rank {world.local_rank} of "
            f"{world.local_size} on {world.servers[world.rank]!r}. Start the ranks host by host in the order of the "
            "table (srun --distribution=block, mpirun --map-by slot), or create the table of this allocation."
        )


def _own_rank(env: host_env.Environment, table: RankTable) -> int:
    path = env.rank_table_file
    if env.rank_id is not None:
        by_pod = _rank_by_pod_number(env, table)
        if by_pod is not None:
            return by_pod
        if env.rank_id >= table.size:
            raise ValueError(
                f"RANK_ID={env.rank_id} is not in RANK_TABLE_FILE={path!r}, which has the ranks 0 to {table.size - 1}. "
                "Export one of them as RANK_ID."
            )
        _check_pod(env, table, env.rank_id)
        return env.rank_id
    if env.pod_name is not None:
        return _rank_of_pod(env, table)
    if table.size == 1:
        return 0
    raise ValueError(
        f"RANK_TABLE_FILE={path!r} has {table.size} ranks and needs RANK_ID, which is not set. Export RANK_ID as "
        f"this process's rank, 0 to {table.size - 1}."
    )


def _rank_by_pod_number(env: host_env.Environment, table: RankTable) -> int | None:
    """Return the rank if RANK_ID is a number that names a pod; all processes of the pod then have the same RANK_ID."""
    if "ASCEND_DEVICE_ID" in env.defaulted:
        return None
    placed = table.placements()
    if env.rank_id is not None and env.rank_id < len(placed) and placed[env.rank_id][1].device_id == env.device_id:
        return None
    ranks = [
        device.rank
        for server, device in placed
        if server.pod_name == str(env.rank_id) and device.device_id == env.device_id
    ]
    return ranks[0] if len(ranks) == 1 else None


def _check_pod(env: host_env.Environment, table: RankTable, rank: int) -> None:
    pod_name = table.placements()[rank][0].pod_name
    if env.pod_name in [server.pod_name for server in table.servers if server.pod_name] and env.pod_name != pod_name:
        raise ValueError(
            f"POD_NAME={env.pod_name!r} and RANK_ID={rank} contradict each other: in RANK_TABLE_FILE="
            f"{env.rank_table_file!r} rank {rank} is in pod {pod_name!r}. Unset one of them."
        )


def _rank_of_pod(env: host_env.Environment, table: RankTable) -> int:
    """Return the rank for old launch scripts, which name the pod and the device instead."""
    path, variable = env.rank_table_file, f"{env.pod_variable}={env.pod_name!r}"
    pods = [server for server in table.servers if server.pod_name == env.pod_name]
    if not pods:
        names = ", ".join(repr(s.pod_name) for s in table.servers if s.pod_name is not None) or "no pods"
        raise ValueError(
            f"{variable} is not in RANK_TABLE_FILE={path!r}, which has {names}. Export RANK_ID as this process's rank, "
            f"0 to {table.size - 1}, or {env.pod_variable} as one of its pods."
        )
    devices = [device for pod in pods for device in pod.devices]
    if len(devices) == 1:
        return devices[0].rank
    of_process = [device.rank for device in devices if device.device_id == env.device_id]
    ids = ", ".join(str(device.device_id) for device in devices)
    if "ASCEND_DEVICE_ID" in env.defaulted or len(of_process) != 1:
        raise ValueError(
            f"{variable} in RANK_TABLE_FILE={path!r} has devices {ids}; the device of this process is "
            f"{'not set' if 'ASCEND_DEVICE_ID' in env.defaulted else env.device_id}. Export DEVICE_ID as one of them, "
            "or RANK_ID as this process's rank."
        )
    return of_process[0]


def _world_at_master(env: host_env.Environment, size: int) -> World:
    """Number the workers of one host by their device. On several hosts only the NPUs can number them."""
    local = env.cm_worker_ip in (None, env.cm_chief_ip)
    if not local or "ASCEND_DEVICE_ID" in env.defaulted or env.device_id >= size:
        raise ValueError(
            f"CM_CHIEF_IP={env.cm_chief_ip!r} with CM_WORKER_SIZE={size} lets the NPUs number the ranks, which the CPU "
            f"supports on one host only. There export ASCEND_DEVICE_ID as this process's rank, 0 to {size - 1}, and "
            "CM_WORKER_IP as CM_CHIEF_IP. For several hosts unset the CM_* variables, and export RANK_ID and "
            "RANK_TABLE_FILE (npu-shim ranktable make creates one)."
        )
    return World(env.device_id, size, (env.cm_chief_ip or THIS_HOST,) * size, env.device_id, "CM_CHIEF_IP")
