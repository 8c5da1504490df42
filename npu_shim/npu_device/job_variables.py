"""Variables of a job: the number of ranks, and the options that a master node or a rank table needs."""

from __future__ import annotations

from typing import MutableMapping

from npu_shim._host import host_env


def get_ranksize() -> str:
    """Return the text of RANK_SIZE or CM_WORKER_SIZE; "1" without both.

    Raises:
        ValueError: both are set.
    """
    host_env.export_rank_variables()
    environ = host_env.process_environ()
    size, workers = environ.get("RANK_SIZE"), environ.get("CM_WORKER_SIZE")
    host_env.raise_for_two_rank_sizes(size, workers)
    return size or workers or "1"


def set_cm_chief_worksize_env(
    global_kw_options: MutableMapping[str, str | None] | None = None,
    env_cm_chief_ip: str | None = None,
    workers_num: int | None = None,
) -> None:
    """Add the options of a job with a master node, from the variables CM_*.

    Args:
        global_kw_options: the options of the device, which are extended; None to check the variables only.
        env_cm_chief_ip: the value of CM_CHIEF_IP.
        workers_num: the number of ranks.
    Raises:
        RuntimeError: a variable is not set.
    """
    environ = host_env.process_environ()
    given = {
        "CM_CHIEF_PORT": environ.get("CM_CHIEF_PORT"),
        "CM_CHIEF_DEVICE": environ.get("CM_CHIEF_DEVICE"),
        "CM_CHIEF_IP": env_cm_chief_ip,
    }
    for name, value in given.items():
        if not value:
            raise RuntimeError(f"A job of several ranks with a master node needs {name}, which is not set. Export it.")
    if global_kw_options is not None:
        global_kw_options.update(
            {
                "_distribute.cm_chief_ip": env_cm_chief_ip,
                "_distribute.cm_chief_port": given["CM_CHIEF_PORT"],
                "_distribute.cm_chief_worker_device": given["CM_CHIEF_DEVICE"],
                "_distribute.cm_worker_ip": environ.get("CM_WORKER_IP"),
                "_distribute.cm_worker_size": str(workers_num),
            }
        )


def set_rank_table_file_env(
    global_kw_options: MutableMapping[str, str | None] | None = None, env_rank_table: str | None = None
) -> None:
    """Add the options of a job with a rank table, from RANK_ID.

    Args:
        global_kw_options: the options of the device, which are extended; None to check the variables only.
        env_rank_table: the value of RANK_TABLE_FILE.
    Raises:
        RuntimeError: RANK_ID is not set.
    """
    rank = host_env.process_environ().get("RANK_ID")
    if not rank:
        raise RuntimeError("A job of several ranks with a rank table needs RANK_ID, which is not set. Export it.")
    if global_kw_options is not None:
        global_kw_options.update({"_distribute.rank_table": env_rank_table, "_distribute.rank_id": rank})
