"""Environment variables: rank, device, job and npu_shim's own settings. Only this module accesses os.environ.

``read_environment()`` reads the variables on each call and returns a frozen record, so that
no value can be out of date. Variables that one process does not need have a
default. Contradictions raise an error that names the variable and its value.
"""

from __future__ import annotations

import json
import os
import re
from typing import Callable, Mapping, MutableMapping, NamedTuple

from npu_shim._host import mpirun

_NUMBER = r"^[+-]?\d+$"
FALLBACKS = ("warn", "error", "silent")
KERNELS = ("compiled", "plain")
MEMORY = ("kept", "returned")
ALIAS_VARIABLE = "NPU_SHIM_ALIAS"
ALIASES = ("0", "1")
REHEARSAL_VARIABLE = "NPU_SHIM_REHEARSAL"
REHEARSALS = ("0", "1")
ON_HOST_VARIABLE = "NPU_SHIM_ON_HOST"  # "1" in a process that leaves the devices alone
DEFAULT_JOB_ID = "local"
# Every variable that read() reads, without those of mpirun, srun and torchrun (mpirun.VARIABLES)
VARIABLES = tuple(
    (
        "RANK_ID RANK_SIZE RANK_TABLE_FILE JOB_ID ASCEND_DEVICE_ID DEVICE_ID CM_CHIEF_IP CM_CHIEF_PORT CM_CHIEF_DEVICE "
        f"CM_WORKER_SIZE CM_WORKER_IP POD_NAME TF_CONFIG NPU_SHIM_FALLBACK {ALIAS_VARIABLE} NPU_SHIM_KERNELS "
        f"NPU_SHIM_MEMORY NPU_SHIM_COMMITS {REHEARSAL_VARIABLE} NPU_SHIM_COLLECTIVE_TIMEOUT HCCL_CONNECT_TIMEOUT"
    ).split()
)
CONNECT_TIMEOUT_S, COLLECTIVE_TIMEOUT_S = 120, 60


class Placement(NamedTuple):
    """The place of a rank on its host, as mpirun or srun gives it in ``variable``: one of ``local_size`` ranks."""

    variable: str
    local_rank: int
    local_size: int


class Environment(NamedTuple):
    """The variables that a launch script sets for this process.

    ``distributed.world`` combines them with the rank table. rank_size is None
    if only the rank table gives it. rank_id is None if it comes from the rank
    table or from the master node (``CM_*`` with more than one worker). Old
    launch scripts give a process's place in the table as pod_name, in the
    variable pod_variable. size_variable is the variable with rank_size, which is one of mpirun's or srun's
    where they number the ranks. placement is set if these have ranks on several
    hosts. The timeouts limit
    the wait for other ranks to start and the wait in a collective. alias is "1" if imports of the vendor's packages
    and Horovod are served (``npu_shim.alias``). commit_dir is the folder in which elastic states survive a restart of
    the job. rehearsal is True if the ranks of all servers of the rank table are processes of this host
    (``npu-shim launch --rehearse``). fallback is None if NPU_SHIM_FALLBACK is not set.
    """

    rank_id: int | None
    rank_size: int | None
    size_variable: str
    placement: Placement | None
    rank_table_file: str | None
    pod_name: str | None
    pod_variable: str
    job_id: str
    device_id: int
    cm_chief_ip: str | None
    cm_worker_ip: str | None
    tf_config: str | None
    fallback: str | None
    alias: str
    kernels: str
    memory: str
    connect_timeout_s: int
    collective_timeout_s: int
    commit_dir: str | None
    rehearsal: bool
    defaulted: tuple[str, ...]

    @property
    def has_cluster(self) -> bool:
        """True if TF_CONFIG describes a cluster of parameter servers."""
        return bool(json.loads(self.tf_config or "{}").get("cluster"))


def process_environ() -> MutableMapping[str, str]:
    """Return the environment of this process, to read and to change."""
    return os.environ


def set_variables(variables: Mapping[str, str]) -> Callable[[], None]:
    """Set variables of this process.

    Returns:
        A function that removes those which are not changed since.
    """
    process_environ().update(variables)

    def remove() -> None:
        environ = process_environ()
        for name, value in variables.items():
            if environ.get(name) == value:
                del environ[name]

    return remove


def read_environment(environ: Mapping[str, str] | None = None) -> Environment:
    """Read the variables of this process.

    Args:
        environ: the variables; those of this process if None.
    Returns:
        An Environment. ``defaulted`` lists the variables that were not set and got a default.
    Raises:
        ValueError: if a value is not allowed, or two variables contradict each
            other. The message names the variable, its value, the allowed values and the fix.
    """
    given = process_environ() if environ is None else environ
    launcher = mpirun.detect_launcher(given)
    mpirun.raise_for_missing_world_size(given)
    env = _Reader({**given, **mpirun.rank_variables(given)} if launcher else given)
    chief_ip = env.text("CM_CHIEF_IP")
    table = env.text("RANK_TABLE_FILE")
    if chief_ip and table:
        raise ValueError(
            f"CM_CHIEF_IP={chief_ip!r} and RANK_TABLE_FILE={table!r} are both set, but a job needs only one of "
            "them. Unset RANK_TABLE_FILE, or unset the CM_* variables."
        )
    chief_port = env.integer("CM_CHIEF_PORT", 0, 65520)
    chief_device = env.integer("CM_CHIEF_DEVICE", 0)
    if chief_ip:
        for name, value in (("CM_CHIEF_PORT", chief_port), ("CM_CHIEF_DEVICE", chief_device)):
            if value is None:
                raise ValueError(f"CM_CHIEF_IP={chief_ip!r} needs {name}, which is not set. Export {name}.")
    rank_size = _read_rank_size(env, table, chief_ip)
    rank_id = _read_rank_id(env, rank_size, by_chief=chief_ip is not None)
    pod_name = env.text("POD_NAME")
    if table and pod_name is None and rank_id is None:
        pod_name = env.text("RANK_ID")
    job_id = env.text("JOB_ID")
    if job_id is not None and not re.match(r"^[A-Za-z0-9_-]+$", job_id):
        raise ValueError(f"JOB_ID={job_id!r} is not allowed: use letters, digits, '-' and '_' only.")
    logical, physical = env.integer("ASCEND_DEVICE_ID", 0), env.integer("DEVICE_ID", 0)
    device_id = logical if logical is not None else physical
    known = {
        "RANK_ID": env.text("RANK_ID"),
        "RANK_SIZE": env.text("RANK_SIZE") or env.text("CM_WORKER_SIZE") or table,
        "JOB_ID": job_id,
        "ASCEND_DEVICE_ID": device_id,
    }
    return Environment(
        rank_id=rank_id,
        rank_size=rank_size,
        size_variable=launcher.size if launcher else "RANK_SIZE",
        placement=_read_placement(env, launcher, given) if launcher else None,
        rank_table_file=table,
        pod_name=pod_name,
        pod_variable="POD_NAME" if env.text("POD_NAME") else "RANK_ID",
        job_id=DEFAULT_JOB_ID if job_id is None else job_id,
        device_id=0 if device_id is None else device_id,
        cm_chief_ip=chief_ip,
        cm_worker_ip=env.text("CM_WORKER_IP"),
        tf_config=env.json_object("TF_CONFIG"),
        fallback=env.choice("NPU_SHIM_FALLBACK", FALLBACKS) if env.text("NPU_SHIM_FALLBACK") else None,
        alias=env.choice(ALIAS_VARIABLE, ALIASES),
        kernels=env.choice("NPU_SHIM_KERNELS", KERNELS),
        memory=env.choice("NPU_SHIM_MEMORY", MEMORY),
        connect_timeout_s=env.integer("HCCL_CONNECT_TIMEOUT", 1) or CONNECT_TIMEOUT_S,
        collective_timeout_s=env.integer("NPU_SHIM_COLLECTIVE_TIMEOUT", 1) or COLLECTIVE_TIMEOUT_S,
        commit_dir=env.text("NPU_SHIM_COMMITS"),
        rehearsal=env.choice(REHEARSAL_VARIABLE, REHEARSALS) == "1",
        defaulted=tuple(name for name, value in known.items() if value is None),
    )


def is_alias_wanted() -> bool:
    """Return True if NPU_SHIM_ALIAS asks for the alias (``npu_shim.alias``).

    Raises:
        ValueError: if the value of NPU_SHIM_ALIAS is not allowed.
    """
    return _Reader(process_environ()).choice(ALIAS_VARIABLE, ALIASES) == "1"


def is_host_only() -> bool:
    """Return True in a process that npu_shim has started to leave the devices of this machine alone."""
    return process_environ().get(ON_HOST_VARIABLE) == "1"


def obs_folder() -> str | None:
    """Return the folder NPU_SHIM_OBS, which has the buckets of OBS (``_host/moxing``), None if it is not set."""
    return _Reader(process_environ()).text("NPU_SHIM_OBS")


def export_rank_variables() -> None:
    """Set the variables of a rank that only mpirun, srun or torchrun gives, for code that reads them without npu_shim.

    Raises:
        ValueError: the variables contradict each other.
    """
    environ = process_environ()
    environ.update(mpirun.rank_variables(environ))


def opp_path() -> str:
    """Return the folder of the NPU's operators, or an empty string if they are not installed."""
    return process_environ().get("ASCEND_OPP_PATH", "")


def _read_placement(env: _Reader, launcher: mpirun.Launcher, environ: Mapping[str, str]) -> Placement | None:
    size, local_rank = env.integer(launcher.size, 1), env.integer(launcher.local_rank, 0)
    local_size = (
        int(mpirun.local_task_count_text(environ, launcher)) if launcher.node else env.integer(launcher.local_size, 1)
    )
    if local_size is None or local_rank is None or local_size == size:
        return None
    return Placement(launcher.local_rank, local_rank, local_size)


def raise_for_two_rank_sizes(size: int | str | None, workers: int | str | None) -> None:
    """Raise ValueError if RANK_SIZE and CM_WORKER_SIZE both have a value."""
    if size is not None and workers is not None:
        raise ValueError(
            f"RANK_SIZE={size} and CM_WORKER_SIZE={workers} are both set, but both give the number of ranks. "
            "With a rank table, unset CM_WORKER_SIZE; with a master node, unset RANK_SIZE."
        )


def _read_rank_size(env: _Reader, table: str | None, chief_ip: str | None) -> int | None:
    size, workers = env.integer("RANK_SIZE", 1), env.integer("CM_WORKER_SIZE", 0, 32768)
    raise_for_two_rank_sizes(size, workers)
    if table and workers is not None:
        raise ValueError(
            f"RANK_TABLE_FILE={table!r} and CM_WORKER_SIZE={workers} are both set, but a rank table gives "
            "the number of ranks. Unset CM_WORKER_SIZE."
        )
    if chief_ip and size is not None:
        raise ValueError(
            f"CM_CHIEF_IP={chief_ip!r} and RANK_SIZE={size} are both set, but a master node uses CM_WORKER_SIZE. "
            f"Unset RANK_SIZE and export CM_WORKER_SIZE={size}, or unset the CM_* variables."
        )
    given = size if size is not None else workers
    return given or (None if table else 1)


def _read_rank_id(env: _Reader, rank_size: int | None, by_chief: bool) -> int | None:
    if by_chief and rank_size != 1:
        return None
    by_table = env.text("RANK_TABLE_FILE") is not None
    given = env.text("RANK_ID")
    if by_table and (given is None or not re.match(_NUMBER, given)):
        return None  # the table may have one rank, or list this process by its pod
    rank_id = env.integer("RANK_ID", 0)
    if rank_id is None:
        if rank_size is not None and rank_size > 1:
            raise ValueError(
                f"RANK_SIZE={rank_size} needs RANK_ID, which is not set. Export RANK_ID as this process's number, "
                f"0 to {rank_size - 1}."
            )
        return 0
    if rank_size is not None and rank_id >= rank_size:
        raise ValueError(
            f"RANK_ID={rank_id} is not allowed with RANK_SIZE={rank_size}: ranks are 0 to {rank_size - 1}. "
            "Export a smaller RANK_ID, or export RANK_SIZE as the number of processes."
        )
    return rank_id


class _Reader:
    """Typed access to a mapping. An empty string counts as not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str) -> str | None:
        value = self._environ.get(name, "").strip()
        return value or None

    def integer(self, name: str, low: int, high: int | None = None) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        allowed = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
        if not re.match(_NUMBER, value) or int(value) < low or (high is not None and int(value) > high):
            raise ValueError(f"{name}={value!r} is not allowed: it must be {allowed}. Correct it, or unset it.")
        return int(value)

    def json_object(self, name: str) -> str | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            parsed = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"{name}={value!r} is not allowed: it is not JSON ({error}). Correct it, or unset it."
            ) from error
        if not isinstance(parsed, dict):
            raise ValueError(f"{name}={value!r} is not allowed: it must be a JSON object. Correct it, or unset it.")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name)
        if value is None:
            return allowed[0]
        if value not in allowed:
            raise ValueError(
                f"{name}={value!r} is not allowed: it must be one of {', '.join(allowed)}. "
                f"Unset it for the default, {allowed[0]}."
            )
        return value
