"""The host of each rank that mpirun or srun starts, where no rank table has it."""

from __future__ import annotations

from typing import Mapping

from npu_shim._host import mpirun
from npu_shim.distributed.ranktable.allocation import expand_nodes


def host_names_of_ranks(
    environ: Mapping[str, str], rank: int, size: int, local_rank: int, local_size: int
) -> tuple[str, ...]:
    """Return a name for the host of each rank.

    srun gives the number of ranks on each node. mpirun gives those of this host only, so every host must have as many.

    Args:
        environ: the variables of the process.
        rank: of this process.
        size: number of ranks.
        local_rank: number of this rank on its host.
        local_size: number of ranks on this host.
    Raises:
        ValueError: the hosts do not follow from the variables.
    """
    launcher = mpirun.detect_launcher(environ)
    assert launcher is not None  # else there is no local rank
    if launcher.node:
        counts, node = mpirun.expand_slurm_counts(environ[launcher.local_size].strip()), int(environ[launcher.node])
        if sum(counts) == size and sum(counts[:node]) + local_rank == rank:
            names = _node_names(environ.get("SLURM_STEP_NODELIST", ""), len(counts))
            return tuple(name for name, count in zip(names, counts) for _ in range(count))
    elif size % local_size == 0 and rank % local_size == local_rank:
        return tuple(f"host {other // local_size}" for other in range(size))
    place = f"{launcher.rank}={rank} of {size} is {launcher.local_rank}={local_rank} of {local_size}"
    raise ValueError(
        f"{place} on its host, so the ranks are not in the order of their hosts, or hosts have different numbers of "
        "ranks. Start them host by host with the same number on each (srun --distribution=block, mpirun --map-by slot, "
        "mpirun -hosts a:2,b:2), or start them with npu-shim launch --hostfile."
    )


def _node_names(nodes: str, count: int) -> tuple[str, ...]:
    """Return the names of the nodes of a step of Slurm; their numbers if the list is unknown."""
    try:
        names = expand_nodes(nodes.strip())
    except ValueError:
        names = ()
    return names if len(set(names)) == count else tuple(f"node {number}" for number in range(count))
