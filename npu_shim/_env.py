"""The one reader of the environment: rank, device, job and npu_shim's own variables.

``read()`` looks at ``os.environ`` each time it is called and returns a frozen
record, so that nothing here can go stale. What one process does not need has a
default; what contradicts itself is an error that names variable and value.
"""

from __future__ import annotations

import json
import os
import re
from typing import Mapping, NamedTuple

_NUMBER = r"^[+-]?\d+$"
FALLBACKS = ("warn", "error", "silent")
KERNELS = ("compiled", "plain")
MEMORY = ("kept", "returned")
DEFAULT_JOB_ID = "local"
# All that read() looks at
VARIABLES = (
    "RANK_ID",
    "RANK_SIZE",
    "RANK_TABLE_FILE",
    "JOB_ID",
    "ASCEND_DEVICE_ID",
    "DEVICE_ID",
    "CM_CHIEF_IP",
    "CM_CHIEF_PORT",
    "CM_CHIEF_DEVICE",
    "CM_WORKER_SIZE",
    "CM_WORKER_IP",
    "POD_NAME",
    "TF_CONFIG",
    "NPU_SHIM_FALLBACK",
    "NPU_SHIM_KERNELS",
    "NPU_SHIM_MEMORY",
    "NPU_SHIM_COLLECTIVES",
    "NPU_SHIM_COLLECTIVE_TIMEOUT",
    "HCCL_CONNECT_TIMEOUT",
    "HCCL_IF_BASE_PORT",
)
CONNECT_TIMEOUT_S, COLLECTIVE_TIMEOUT_S = 120, 60
COLLECTIVES = ("auto", "shm", "tensorflow")
BASE_PORT = 60000


class Environment(NamedTuple):
    """What the launch script said about this process.

    These are the variables alone; ``distributed.world`` puts them and the rank
    table together. rank_size is None where only the rank table says it.
    rank_id is None where the rank table has to say it, or the master node
    (``CM_*`` with more than one worker). pod_name is how old launch scripts
    name a process's place in the table, in the variable pod_variable. The
    timeouts say how long ranks wait for others to start, and in a collective.
    collectives says what carries them without cards, base_port from where the
    ports of the ranks count, if they need any.
    """

    rank_id: int | None
    rank_size: int | None
    rank_table_file: str | None
    pod_name: str | None
    pod_variable: str
    job_id: str
    device_id: int
    cm_chief_ip: str | None
    cm_chief_port: int | None
    cm_chief_device: int | None
    cm_worker_ip: str | None
    tf_config: str | None
    fallback: str
    kernels: str
    memory: str
    connect_timeout_s: int
    collective_timeout_s: int
    collectives: str
    base_port: int
    defaulted: tuple[str, ...]

    @property
    def has_cluster(self) -> bool:
        """True when TF_CONFIG describes a cluster of parameter servers."""
        return bool(json.loads(self.tf_config or "{}").get("cluster"))


def read(environ: Mapping[str, str] | None = None) -> Environment:
    """Reads the variables of this process.

    Args:
        environ: where to read; ``os.environ`` when None.
    Returns:
        An Environment. ``defaulted`` names what was not set and got a default.
    Raises:
        ValueError: a value is not allowed, or two variables contradict each
            other; the text names variable, value, what is allowed and what to do.
    """
    env = _Reader(os.environ if environ is None else environ)
    chief_ip = env.text("CM_CHIEF_IP")
    table = env.text("RANK_TABLE_FILE")
    if chief_ip and table:
        raise ValueError(
            f"CM_CHIEF_IP={chief_ip!r} and RANK_TABLE_FILE={table!r} are both set, but a job is described by one of "
            "them: unset RANK_TABLE_FILE, or unset the CM_* variables."
        )
    chief_port = env.integer("CM_CHIEF_PORT", 0, 65520)
    chief_device = env.integer("CM_CHIEF_DEVICE", 0)
    if chief_ip:
        for name, value in (("CM_CHIEF_PORT", chief_port), ("CM_CHIEF_DEVICE", chief_device)):
            if value is None:
                raise ValueError(f"CM_CHIEF_IP={chief_ip!r} needs {name}, which is not set: export {name}.")
    rank_size = _rank_size(env, table, chief_ip)
    rank_id = _rank_id(env, rank_size, by_chief=chief_ip is not None)
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
        rank_table_file=table,
        pod_name=pod_name,
        pod_variable="POD_NAME" if env.text("POD_NAME") else "RANK_ID",
        job_id=DEFAULT_JOB_ID if job_id is None else job_id,
        device_id=0 if device_id is None else device_id,
        cm_chief_ip=chief_ip,
        cm_chief_port=chief_port,
        cm_chief_device=chief_device,
        cm_worker_ip=env.text("CM_WORKER_IP"),
        tf_config=env.json_object("TF_CONFIG"),
        fallback=env.choice("NPU_SHIM_FALLBACK", FALLBACKS),
        kernels=env.choice("NPU_SHIM_KERNELS", KERNELS),
        memory=env.choice("NPU_SHIM_MEMORY", MEMORY),
        connect_timeout_s=env.integer("HCCL_CONNECT_TIMEOUT", 1) or CONNECT_TIMEOUT_S,
        collective_timeout_s=env.integer("NPU_SHIM_COLLECTIVE_TIMEOUT", 1) or COLLECTIVE_TIMEOUT_S,
        collectives=env.choice("NPU_SHIM_COLLECTIVES", COLLECTIVES),
        base_port=env.integer("HCCL_IF_BASE_PORT", 1024, 65520) or BASE_PORT,
        defaulted=tuple(name for name, value in known.items() if value is None),
    )


def opp_path() -> str:
    """Where the card's operators are installed; an empty text where they are not."""
    return os.environ.get("ASCEND_OPP_PATH", "")


def _rank_size(env: _Reader, table: str | None, chief_ip: str | None) -> int | None:
    size, workers = env.integer("RANK_SIZE", 1), env.integer("CM_WORKER_SIZE", 0, 32768)
    if size is not None and workers is not None:
        raise ValueError(
            f"RANK_SIZE={size} and CM_WORKER_SIZE={workers} are both set, but both say how many ranks there are: "
            "unset CM_WORKER_SIZE with a rank table, RANK_SIZE with a master node."
        )
    if table and workers is not None:
        raise ValueError(
            f"RANK_TABLE_FILE={table!r} and CM_WORKER_SIZE={workers} are both set, but a rank table says itself how "
            "many ranks there are: unset CM_WORKER_SIZE."
        )
    if chief_ip and size is not None:
        raise ValueError(
            f"CM_CHIEF_IP={chief_ip!r} and RANK_SIZE={size} are both set, but a master node counts workers by "
            f"CM_WORKER_SIZE: unset RANK_SIZE and export CM_WORKER_SIZE={size}, or unset the CM_* variables."
        )
    given = size if size is not None else workers
    return given or (None if table else 1)


def _rank_id(env: _Reader, rank_size: int | None, by_chief: bool) -> int | None:
    if by_chief and rank_size != 1:
        return None
    by_table = env.text("RANK_TABLE_FILE") is not None
    said = env.text("RANK_ID")
    if by_table and (said is None or not re.match(_NUMBER, said)):
        return None  # the table may have one rank, or know this process by its pod
    rank_id = env.integer("RANK_ID", 0)
    if rank_id is None:
        if rank_size is not None and rank_size > 1:
            raise ValueError(
                f"RANK_SIZE={rank_size} needs RANK_ID, which is not set: export RANK_ID as this process's number, "
                f"0 to {rank_size - 1}."
            )
        return 0
    if rank_size is not None and rank_id >= rank_size:
        raise ValueError(
            f"RANK_ID={rank_id} is not allowed with RANK_SIZE={rank_size}: ranks are 0 to {rank_size - 1}. "
            f"Export a smaller RANK_ID, or RANK_SIZE as the number of all processes."
        )
    return rank_id


class _Reader:
    """Typed access to a mapping; an empty text counts as not set."""

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
            raise ValueError(f"{name}={value!r} is not allowed: it must be {allowed}. Export it so, or unset it.")
        return int(value)

    def json_object(self, name: str) -> str | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            found = json.loads(value)
        except ValueError as error:
            raise ValueError(
                f"{name}={value!r} is not allowed: it is not JSON ({error}). Correct it, or unset it."
            ) from error
        if not isinstance(found, dict):
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
