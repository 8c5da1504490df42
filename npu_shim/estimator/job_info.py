"""The description of a training job that a job scheduler hands over in a JSON file or in variables."""

from __future__ import annotations

import json

from npu_shim._host import host_env
from npu_shim._tensorflow.types import Tensor
from npu_shim.distributed.ranks import get_rank_id, get_rank_size
from npu_shim.estimator.checks import check_nonnegative_integer, check_not_none, check_positive_integer


class JobConfig:
    """Learning rate and batch size of a job.

    Args:
        learning_rate: a number or a scalar tensor.
        batch_size: examples for each step.
    """

    def __init__(self, learning_rate: Tensor | float | None = None, batch_size: int | None = None) -> None:
        self._learning_rate = learning_rate
        self._batch_size = batch_size


class DeviceInfo:
    """A device of a job.

    Args:
        index: its rank, as text.
        server_id: the name of its server.
        dev_index: its number on the server.
    """

    def __init__(self, index: str = "0", server_id: str = "123456", dev_index: int = 1) -> None:
        self._index = index
        self._server_id = server_id
        self._dev_index = dev_index

    def is_master_node(self) -> bool:
        """Return True if this is the device of rank 0."""
        return str(self._index) == "0"


class JobInfo:
    """A record of a training job. Each argument ``x`` becomes the attribute ``_x``.

    Args:
        job_id: the name of the job.
        job_config: a JobConfig.
        heartbeat_time: seconds between two heartbeats; -1 for none.
        region_id, ak, sk, endpoint_url: access to an object store.
        device_info: a DeviceInfo.
        rank_table_file: path of the rank table.
        restart_flag: 1 if the scheduler started the job again.
        local_app_dir, local_data_dir, local_checkpoint_dir, local_log_dir, local_result_dir: folders of the job.
        local_boot_file: path of the script.
        rank_size: the number of ranks.
    """

    def __init__(
        self, job_id: int | str = 0, job_config: JobConfig | None = None, heartbeat_time: int | str = -1,
        region_id: str | None = None, ak: str | None = None, sk: str | None = None, endpoint_url: str | None = None,
        device_info: DeviceInfo | None = None, rank_table_file: str | None = None, restart_flag: int = 0,
        local_app_dir: str | None = None, local_data_dir: str | None = None, local_checkpoint_dir: str | None = None,
        local_log_dir: str | None = None, local_result_dir: str | None = None, local_boot_file: str | None = None,
        rank_size: int = 1,
    ) -> None:  # fmt: skip
        given = dict(locals())
        del given["self"]
        vars(self).update({f"_{name}": value for name, value in given.items()})


class NPUBasics:
    """The job of this process, from a JSON file, else from JOB_ID and the variables of the ranks.

    Args:
        file_name: path of a JSON object with device_info.Index, rank_table_file and rank_size. If there is no such
            file, the variables count.
    Raises:
        ValueError: the file is not a JSON object, or lacks a value.
        TypeError: Index or rank_size is not an integer.
    """

    def __init__(self, file_name: str) -> None:
        self._job_info = _read_job_info_file(file_name) or _job_info_of_environment()

    @property
    def jobinfo(self) -> JobInfo:
        """The JobInfo of this process."""
        return self._job_info

    def size(self) -> int:
        """Return the number of ranks."""
        size: int = vars(self._job_info)["_rank_size"]
        return size


def _read_job_info_file(name: str) -> JobInfo | None:
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    try:
        job = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the job file {name!r} is not JSON ({error}). Write a JSON object.") from error
    if not isinstance(job, dict):
        raise ValueError(f"the job file {name!r} holds {type(job).__name__}, but must hold a JSON object.")
    device = job.get("device_info")
    check_not_none(device, "device_info")
    index = (device or {}).get("Index")
    check_nonnegative_integer(index, "Index")
    check_not_none(job.get("rank_table_file"), "rank_table_file")
    check_positive_integer(job.get("rank_size"), "rank_size")
    return JobInfo(
        device_info=DeviceInfo(str(index)),
        rank_table_file=job["rank_table_file"],
        local_checkpoint_dir=job.get("local_checkpoint_dir"),
        rank_size=job["rank_size"],
    )


def _job_info_of_environment() -> JobInfo:
    environment = host_env.read_environment()
    return JobInfo(
        job_id=environment.job_id,
        device_info=DeviceInfo(str(get_rank_id())),
        rank_table_file=environment.rank_table_file,
        rank_size=get_rank_size(),
    )
