"""The plan of a job: one process per rank, with its environment, cores and log."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Mapping, NamedTuple, Sequence

from npu_shim._host import host_env

# Variables of another job, or of another description of the job: they would contradict the plan.
_REMOVED = (
    *(
        "RANK_ID RANK_SIZE RANK_TABLE_FILE POD_NAME ASCEND_DEVICE_ID DEVICE_ID DEVICE_INDEX CM_CHIEF_IP CM_CHIEF_PORT "
        "CM_CHIEF_DEVICE CM_WORKER_SIZE CM_WORKER_IP TF_CONFIG"
    ).split(),
    host_env.REHEARSAL_VARIABLE,
)
OP_THREADS = "TF_NUM_INTRAOP_THREADS"  # of TensorFlow; a session config with its own value has precedence


class Share(NamedTuple):
    """The part of a host that a rank gets.

    Attributes:
        cores: its processors; those of the launcher when empty.
        node: the NUMA node whose memory it takes first; None for any.
    """

    cores: tuple[int, ...] = ()
    node: int | None = None


@dataclass(frozen=True)
class RankSlot:
    """A rank of the job and its device.

    Attributes:
        rank: its rank.
        device: number of the device on its server.
        server: index of its server in the rank table, if this host rehearses all servers; else None.
    """

    rank: int
    device: int
    server: int | None = None

    @property
    def log_name(self) -> str:
        """Return the file name of its log."""
        return f"rank_{self.rank}.log" if self.server is None else f"server_{self.server}_rank_{self.rank}.log"


@dataclass(frozen=True)
class RankProcess:
    """The process of a rank.

    Attributes:
        rank: its rank.
        command: program and arguments.
        environment: the variables that differ from those of the launcher.
        removed: the variables of the launcher that it does not inherit.
        share: its processors and memory.
        log: the file for standard output and standard error.
        name: for messages; that of the rank if empty.
        starts: the number of ranks that it starts, if it is mpirun; else 0.
    """

    rank: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    removed: tuple[str, ...]
    share: Share
    log: str
    name: str = ""
    starts: int = 0

    def full_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return all variables of the process.

        Args:
            environ: the variables of the launcher.
        """
        kept = {name: value for name, value in environ.items() if name not in self.removed}
        return {**kept, **self.environment}

    def shell_command(self) -> str:
        """Return the shell command that starts the same process."""
        words = ["env"] + [f"-u {name}" for name in self.removed]
        words += [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        if self.share.node is not None:
            words.append(f"numactl --preferred={self.share.node}")
        if self.share.cores:
            words.append("taskset -c " + ",".join(map(str, self.share.cores)))
        words += [shlex.quote(word) for word in self.command]
        return " ".join(words + [">>", shlex.quote(self.log), "2>&1"])


def rank_processes(
    slots: Sequence[RankSlot],
    world_size: int,
    command: Sequence[str],
    job_id: str,
    log_dir: str,
    rank_table: str | None = None,
    shares: Sequence[Share] | None = None,
    environ: Mapping[str, str] | None = None,
    threads: int | None = None,
) -> list[RankProcess]:
    """Return the processes of this host.

    Args:
        slots: the ranks of this host.
        world_size: number of ranks on all hosts.
        command: program and arguments, the same for each rank.
        job_id: name of the job.
        log_dir: the folder for the logs; RankSlot.log_name is the name of each.
        rank_table: path of the rank table; None without one.
        shares: the processors and memory of each rank, in the order of slots; None to bind no rank.
        environ: the variables of the launcher; those of this process when None.
        threads: number of TensorFlow threads within an op; None for the default of TensorFlow.
    Returns:
        One RankProcess for each slot, in the same order.
    """
    environ = host_env.process_environ() if environ is None else environ
    planned: list[RankProcess] = []
    for index, slot in enumerate(slots):
        own = {
            "JOB_ID": job_id,
            "RANK_ID": str(slot.rank),
            "RANK_SIZE": str(world_size),
            "ASCEND_DEVICE_ID": str(slot.device),
            "DEVICE_ID": str(slot.device),
        }
        if rank_table:
            own["RANK_TABLE_FILE"] = os.path.abspath(rank_table)
        if slot.server is not None:
            own[host_env.REHEARSAL_VARIABLE] = "1"
        if threads is not None and not environ.get(OP_THREADS):
            own[OP_THREADS] = str(threads)
        if "PYTHONUNBUFFERED" not in environ:
            own["PYTHONUNBUFFERED"] = "1"  # buffered output would be missing from the log when a rank hangs
        planned.append(
            RankProcess(
                rank=slot.rank,
                command=tuple(command),
                environment=own,
                removed=tuple(name for name in _REMOVED if name in environ and name not in own),
                share=shares[index] if shares else Share(),
                log=os.path.join(log_dir, slot.log_name),
            )
        )
    return planned


def share_cores(available: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Divide processors evenly among processes: adjacent ones, at least one for each process.

    Args:
        available: numbers of the processors.
        count: number of processes. If there are more processes than processors, several share one.
    """
    total = len(available)
    return [
        tuple(available[index * total // count : (index + 1) * total // count]) or (available[index * total // count],)
        for index in range(count)
    ]


def share_threads(available: Sequence[int], count: int) -> int | None:
    """Return the number of TensorFlow threads within an op for processes that share the processors.

    By default TensorFlow uses one per processor. Several ranks together then have
    more threads than processors, and wait for each other in the middle of an op.

    Args:
        available: numbers of the processors.
        count: number of processes.
    Returns:
        At least 1; None for a single process.
    """
    return max(1, len(available) // count) if count > 1 else None
