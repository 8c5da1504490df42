"""What is to be started: one process per rank, with its environment, cores and log."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Mapping, Sequence

from npu_shim.distributed import addresses

# Of another way to describe the job, or of another job: these would contradict what a rank is told here.
_FOREIGN = (
    "RANK_ID",
    "RANK_SIZE",
    "RANK_TABLE_FILE",
    "POD_NAME",
    "ASCEND_DEVICE_ID",
    "DEVICE_ID",
    "DEVICE_INDEX",
    "CM_CHIEF_IP",
    "CM_CHIEF_PORT",
    "CM_CHIEF_DEVICE",
    "CM_WORKER_SIZE",
    "CM_WORKER_IP",
    "TF_CONFIG",
)
OP_THREADS = "TF_NUM_INTRAOP_THREADS"  # TensorFlow's: a session config that says something of it itself wins


@dataclass(frozen=True)
class Seat:
    """A rank's place: its number in the job and its device on this host."""

    rank: int
    device: int


@dataclass(frozen=True)
class RankProcess:
    """A process that is to be started.

    Attributes:
        rank: its number in the job.
        command: program and arguments.
        environment: the variables that differ from the launcher's.
        removed: the launcher's variables that it must not see.
        cores: the processors it may use; all of the launcher's when empty.
        log: the file for both its outputs.
    """

    rank: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    removed: tuple[str, ...]
    cores: tuple[int, ...]
    log: str

    def full_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """All variables of the process.

        Args:
            environ: the launcher's.
        """
        kept = {name: value for name, value in environ.items() if name not in self.removed}
        return {**kept, **self.environment}

    def as_shell(self) -> str:
        """The line that starts the same process in a shell."""
        words = ["env"] + [f"-u {name}" for name in self.removed]
        words += [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        if self.cores:
            words.append("taskset -c " + ",".join(map(str, self.cores)))
        words += [shlex.quote(word) for word in self.command]
        return " ".join(words + [">>", shlex.quote(self.log), "2>&1"])


def processes(
    seats: Sequence[Seat],
    world_size: int,
    command: Sequence[str],
    job_id: str,
    log_dir: str,
    rank_table: str | None = None,
    cores: Sequence[tuple[int, ...]] | None = None,
    environ: Mapping[str, str] = os.environ,
    threads: int | None = None,
) -> list[RankProcess]:
    """The processes of this host.

    Args:
        seats: the ranks that live here.
        world_size: how many ranks the job has on all hosts.
        command: program and arguments, the same for each rank.
        job_id: name of the job.
        log_dir: the folder for the logs, ``rank_0.log`` and so on.
        rank_table: path of the rank table, where there is one.
        cores: the processors of each rank, in the order of seats; none to bind nothing.
        environ: the launcher's variables.
        threads: of TensorFlow, for a rank to part an op among; none for as many as TensorFlow takes.
    Returns:
        One RankProcess for each seat, in the same order.
    """
    made: list[RankProcess] = []
    ports = _ports(len(seats), world_size, environ)
    for index, seat in enumerate(seats):
        own = {
            "JOB_ID": job_id,
            "RANK_ID": str(seat.rank),
            "RANK_SIZE": str(world_size),
            "ASCEND_DEVICE_ID": str(seat.device),
            "DEVICE_ID": str(seat.device),
        }
        if rank_table:
            own["RANK_TABLE_FILE"] = os.path.abspath(rank_table)
        if ports is not None:
            own["HCCL_IF_BASE_PORT"] = str(ports)
        if threads is not None and not environ.get(OP_THREADS):
            own[OP_THREADS] = str(threads)
        if "PYTHONUNBUFFERED" not in environ:
            own["PYTHONUNBUFFERED"] = "1"  # a log that lags behind is of no use when a rank hangs
        made.append(
            RankProcess(
                rank=seat.rank,
                command=tuple(command),
                environment=own,
                removed=tuple(name for name in _FOREIGN if name in environ and name not in own),
                cores=tuple(cores[index]) if cores else (),
                log=os.path.join(log_dir, f"rank_{seat.rank}.log"),
            )
        )
    return made


def _ports(local: int, world_size: int, environ: Mapping[str, str]) -> int | None:
    """Ports for ranks that need some, so that jobs on one host do not meet; those of several hosts need the same ones."""
    if environ.get("NPU_SHIM_COLLECTIVES") != "tensorflow" or "HCCL_IF_BASE_PORT" in environ or local != world_size:
        return None
    return addresses.free_base_port(world_size)


def share_cores(available: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Processors for each of several processes: neighbours, as evenly as they go, each process at least one.

    Args:
        available: numbers of the processors.
        count: of processes. Where there are more of them than processors, several share one.
    """
    total = len(available)
    return [
        tuple(available[index * total // count : (index + 1) * total // count]) or (available[index * total // count],)
        for index in range(count)
    ]


def share_threads(available: Sequence[int], count: int) -> int | None:
    """Threads for each of several processes to part an op among, where all of them share the processors.

    TensorFlow takes one for each processor, so that the ranks together have
    more than can run, and wait for each other in the middle of an op.

    Args:
        available: numbers of the processors.
        count: of processes.
    Returns:
        At least 1; None for a process that has the processors for itself.
    """
    return max(1, len(available) // count) if count > 1 else None
