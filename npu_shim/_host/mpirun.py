"""The ranks of processes that mpirun, srun or torchrun starts.

These launchers number their processes in variables of their own. ``rank_variables()`` translates them to the
variables of a rank (RANK_ID and so on). Sources: Open MPI 4.1 and 5.0, MPICH 5.0 and Slurm 22.05 as they run; the PMIx
standard; torchrun's page in PyTorch's documentation.
"""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple

# A process with one of these has its rank from its own launch script.
_OWN = ("RANK_ID", "RANK_SIZE", "CM_CHIEF_IP", "CM_WORKER_SIZE", "POD_NAME")
_COUNTS = re.compile(r"^(\d+)(?:\(x(\d+)\))?$")


class Launcher(NamedTuple):
    """The variables of a launcher.

    Attributes:
        rank, size, local_rank, local_size: the variables of a process. local_size may be the numbers of all nodes, as
            Slurm writes them, if ``node`` has the number of this one.
        job: name the job.
        needs: the launcher is used only if all of these are set, too.
        same: other variables with the same rank, if they are set.
        node: the number of the node, or an empty string.
    """

    rank: str
    size: str
    local_rank: str
    local_size: str
    job: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    node: str = ""


# In this order: mpirun and torchrun may start their own processes with srun, which then have its variables, too.
LAUNCHERS = (
    Launcher(
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE",),
        same=("PMIX_RANK",),
    ),
    Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    Launcher(
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "MASTER_PORT"),
        ("TORCHELASTIC_RUN_ID",),  # other programs use RANK and WORLD_SIZE, too
    ),
    Launcher(
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",  # a batch script has SLURM_NTASKS, but is one process
        "SLURM_LOCALID",
        "SLURM_STEP_TASKS_PER_NODE",
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
        ("SLURM_NODEID",),
        same=("PMIX_RANK", "PMI_RANK"),
        node="SLURM_NODEID",
    ),
)
# A rank without the number of ranks: from mpirun of another MPI, or prterun
_INCOMPLETE = ("PMIX_RANK", "PMI_RANK")
VARIABLES = tuple(dict.fromkeys(name for one in LAUNCHERS for name in (*one[:4], *one.job, *one.needs, *one.same)))


def detect_launcher(environ: Mapping[str, str]) -> Launcher | None:
    """Return the launcher that gives this process its rank, None if its own variables do or there is no launcher.

    RANK_ID and RANK_SIZE with the launcher's values are copies of them, as scripts export them.

    Args:
        environ: the variables of the process.
    """
    own = {name: environ[name].strip() for name in _OWN if environ.get(name, "").strip()}
    for candidate in LAUNCHERS:
        if all(environ.get(name, "").strip() for name in (*candidate[:4], *candidate.needs)):
            copies = {"RANK_ID": environ[candidate.rank].strip(), "RANK_SIZE": environ[candidate.size].strip()}
            return candidate if not own or own == copies else None
    return None


def rank_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a rank that follow from those of a launcher; those that are set are not among them.

    Args:
        environ: the variables of the process.
    Raises:
        ValueError: the variables contradict each other.
    """
    starter = detect_launcher(environ)
    if starter is None:
        return {}
    rank, size, local_rank = (environ[name].strip() for name in starter[:3])
    for name in starter.same:
        other = environ.get(name, "").strip()
        if other and other != rank:
            raise ValueError(
                f"{starter.rank}={rank} contradicts {name}={other}. Unset the variables of the launcher that did not "
                "start this process, or export RANK_ID and RANK_SIZE."
            )
    of_rank = {"RANK_ID": rank, "RANK_SIZE": size}
    if not any(environ.get(name, "").strip() for name in ("ASCEND_DEVICE_ID", "DEVICE_ID")):
        of_rank["DEVICE_ID"] = local_rank
    job = "_".join(environ[name] for name in starter.job if environ.get(name))
    if job and not environ.get("JOB_ID", "").strip():
        of_rank["JOB_ID"] = re.sub(r"[^A-Za-z0-9_-]", "-", job)
    return {name: value for name, value in of_rank.items() if not environ.get(name, "").strip()}


def raise_for_missing_table(environ: Mapping[str, str]) -> None:
    """Raise an error if a launcher has ranks on several hosts and there is no rank table, which NPUs need.

    Raises:
        ValueError: see above.
    """
    starter = detect_launcher(environ)
    if starter is None or environ.get("RANK_TABLE_FILE", "").strip():
        return
    size, local_size = environ[starter.size].strip(), local_task_count_text(environ, starter)
    if size != local_size:
        option = "--slurm" if starter.node else "--mpi"
        raise ValueError(
            f"{starter.size}={size} and {starter.local_size}={environ[starter.local_size].strip()}: the ranks are on "
            f"several hosts, whose NPUs need a rank table. Create one with npu-shim ranktable make {option}, and "
            "export RANK_TABLE_FILE on each host."
        )


def raise_for_missing_world_size(environ: Mapping[str, str]) -> None:
    """Raise an error if a launcher numbers the processes without saying how many there are.

    Without the error, each process would train alone.

    Args:
        environ: the variables of the process.
    Raises:
        ValueError: a rank is set, but its size, local rank or local size is not.
    """
    if detect_launcher(environ) is not None or any(environ.get(name, "").strip() for name in _OWN):
        return
    for name in _INCOMPLETE:
        rank = environ.get(name, "").strip()
        if rank and environ.get("PMI_SIZE", "").strip() != "1":
            known = ", ".join("/".join(one[:4]) for one in LAUNCHERS)
            raise ValueError(
                f"{name}={rank} is the rank of this process, but the number of ranks or the local rank is missing. "
                f"npu_shim reads {known}. Export RANK_ID, RANK_SIZE and DEVICE_ID, or unset {name}."
            )


def expand_slurm_counts(text: str) -> tuple[int, ...]:
    """Return the numbers of a list as Slurm writes it: ``2(x3),1`` for 2, 2, 2, 1.

    Raises:
        ValueError: it is no such list.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = _COUNTS.match(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is no number of tasks")
        counts += [int(match.group(1))] * int(match.group(2) or 1)
    return tuple(counts)


def local_task_count_text(environ: Mapping[str, str], starter: Launcher) -> str:
    """Return the number of ranks on this host, as a launcher gives it.

    Raises:
        ValueError: the numbers of all nodes do not have the one of this node.
    """
    if not starter.node:
        return environ[starter.local_size].strip()
    text, node = environ[starter.local_size].strip(), environ[starter.node].strip()
    try:
        counts = expand_slurm_counts(text)
        return str(counts[int(node)])
    except (ValueError, IndexError):
        raise ValueError(
            f"{starter.local_size}={text!r} does not have the tasks of {starter.node}={node!r}. Start the script with "
            "srun, or export RANK_ID and RANK_SIZE."
        ) from None
