"""The command that starts the ranks of several hosts: mpirun of Open MPI or MPICH, with a host_rank for each rank."""

from __future__ import annotations

import os
import sys
from typing import Mapping, Sequence

from npu_shim._host import host_env
from npu_shim.distributed.ranktable import allocation
from npu_shim.distributed.ranktable.generate import Host
from npu_shim.launching import host_rank
from npu_shim.launching.follow import FIRST
from npu_shim.launching.job import RESTART_VARIABLE
from npu_shim.launching.plan import RankProcess, RankSlot, Share, rank_processes

_OF_RANK = ("RANK_ID", "RANK_SIZE", "ASCEND_DEVICE_ID", "DEVICE_ID")  # which mpirun gives
_FORWARDED = ("PYTHON", "NPU_SHIM_", "HCCL_", "TF_", "OMP_", "KERAS_", "PATH", "LD_LIBRARY_PATH", "UCX_", "FI_")


def mpirun_process(
    hosts: Sequence[Host],
    command: Sequence[str],
    job_id: str,
    log_dir: str,
    rank_table: str,
    environ: Mapping[str, str] | None = None,
    bind_cores: bool = False,
    shown_ranks: str = FIRST,
) -> RankProcess:
    """Return the process that starts all ranks of a job and ends with them.

    Args:
        hosts: with their devices, in the order of their ranks.
        command: program and arguments, the same for each rank.
        job_id: name of the job.
        log_dir: the folder for the logs, on each host.
        rank_table: path of the rank table, on each host.
        environ: the variables of the launcher; those of this process when None.
        bind_cores: True to bind each rank to its own processors.
        shown_ranks: "first" or "all", as for Job.
    Raises:
        ValueError: there is no mpirun, or it is neither that of Open MPI nor that of MPICH.
    """
    environ = host_env.process_environ() if environ is None else environ
    size = sum(len(host.devices or ()) for host in hosts)
    (rank,) = rank_processes([RankSlot(0, 0)], size, command, job_id, log_dir, rank_table, environ=environ)
    own = {name: value for name, value in rank.environment.items() if name not in _OF_RANK}
    forwarded = {
        name: environ[name] for name in sorted(environ) if name.startswith(_FORWARDED) and name not in rank.removed
    }
    # env works in the same way with each mpirun, whose options for variables differ
    words = ["env", *(f"{name}={value}" for name, value in {**forwarded, **own}.items())]
    processors = host_rank.BOUND if bind_cores else host_rank.SHARED
    words += [sys.executable, "-m", host_rank.__name__, os.path.abspath(log_dir), processors, shown_ranks, *command]
    mpirun = allocation.find_mpirun()
    removed = (*_OF_RANK, *rank.removed)
    return RankProcess(
        rank=0,
        command=(*mpirun_command(mpirun, allocation.command_output([mpirun, "--version"]), hosts), *words),
        environment=own,
        removed=tuple(dict.fromkeys(name for name in removed if name in environ)),
        share=Share(),
        log=os.path.join(log_dir, "mpirun.log"),
        name="mpirun",
        starts=size,
    )


def mpirun_command(mpirun: str, version: str, hosts: Sequence[Host]) -> list[str]:
    """Return the beginning of the command that starts a process for each slot, host by host.

    Args:
        mpirun: its path.
        version: what ``mpirun --version`` prints.
        hosts: with their devices.
    Raises:
        ValueError: mpirun is neither that of Open MPI nor that of MPICH.
    """
    slots = ",".join(f"{host.name}:{len(host.devices or ())}" for host in hosts)
    begin = [mpirun, "-np", str(sum(len(host.devices or ()) for host in hosts))]
    if "Open MPI" in version or "OpenRTE" in version:
        # MPICH exports the variables of each start by itself.
        exported = ["-x", RESTART_VARIABLE]
        return [
            *begin,
            "--host",
            slots,
            "--map-by",
            "slot",
            "--bind-to",
            "none",
            *exported,
            *allocation.run_as_root_options(),
        ]
    if "HYDRA" in version:
        return [*begin, "-hosts", slots]
    first = (version.strip().splitlines() or ["nothing"])[0]
    raise ValueError(
        f"{mpirun} --version prints {first!r}, but the command knows Open MPI and MPICH. Install one of them with "
        "pip install 'npu_shim[mpi]'."
    )
