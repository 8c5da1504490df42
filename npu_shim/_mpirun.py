"""The ranks of processes that mpirun or torchrun starts.

These launchers number their processes in variables of their own. ``variables()`` translates them to the variables of a
rank (RANK_ID and so on). Sources: Open MPI 5.0 and MPICH 5.0 as they run; torchrun's page in PyTorch's documentation.
"""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple

# A process with one of these has its rank from its own launch script.
_OWN = ("RANK_ID", "RANK_SIZE", "CM_CHIEF_IP", "CM_WORKER_SIZE", "POD_NAME")


class Launcher(NamedTuple):
    """The variables of a launcher. ``job`` names the job; the launcher is used only if all of ``needs`` are set."""

    rank: str
    size: str
    local_rank: str
    local_size: str
    job: tuple[str, ...]
    needs: tuple[str, ...] = ()


LAUNCHERS = (
    Launcher(
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE",),
    ),
    Launcher("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ()),
    Launcher(
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        ("TORCHELASTIC_RUN_ID", "MASTER_PORT"),
        ("TORCHELASTIC_RUN_ID",),  # other programs use RANK and WORLD_SIZE, too
    ),
)
VARIABLES = tuple(name for launcher in LAUNCHERS for name in (*launcher[:4], *launcher.job))


def launcher(environ: Mapping[str, str]) -> Launcher | None:
    """Return the launcher that gives this process its rank, None if its own variables do or there is no launcher.

    Args:
        environ: the variables of the process.
    """
    if any(environ.get(name, "").strip() for name in _OWN):
        return None
    for found in LAUNCHERS:
        if all(environ.get(name, "").strip() for name in (*found[:4], *found.needs)):
            return found
    return None


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a rank that follow from those of a launcher; those that are set are not among them.

    Args:
        environ: the variables of the process.
    Raises:
        ValueError: the ranks are on several hosts, and there is no rank table.
    """
    found = launcher(environ)
    if found is None:
        return {}
    rank, size, local_rank, local_size = (environ[name].strip() for name in found[:4])
    if size != local_size and not environ.get("RANK_TABLE_FILE", "").strip():
        raise ValueError(
            f"{found.size}={size} and {found.local_size}={local_size}: the ranks are on several hosts, which need a "
            "rank table. Create one with npu-shim ranktable make, and export RANK_TABLE_FILE on each host."
        )
    made = {"RANK_ID": rank, "RANK_SIZE": size}
    if not any(environ.get(name, "").strip() for name in ("ASCEND_DEVICE_ID", "DEVICE_ID")):
        made["DEVICE_ID"] = local_rank
    job = "_".join(environ[name] for name in found.job if environ.get(name))
    if job and not environ.get("JOB_ID", "").strip():
        made["JOB_ID"] = re.sub(r"[^A-Za-z0-9_-]", "-", job)
    return made
