"""The ranks of processes that mpirun or torchrun starts."""

from __future__ import annotations

import json
import pathlib

import pytest

from npu_shim import _env, _mpirun
from npu_shim.distributed.world import world

OPEN_MPI, HYDRA, TORCHRUN = (
    dict(zip(launcher[:4], ("3", "4", "1", "4")), **{name: "a@1" for name in launcher.job})
    for launcher in _mpirun.LAUNCHERS
)


@pytest.mark.parametrize(
    "environ, job", [(OPEN_MPI, "a-1"), (HYDRA, "local"), (TORCHRUN, "a-1_a-1")], ids=["open mpi", "hydra", "torchrun"]
)
def test_each_launcher_numbers_the_ranks_of_a_host(environ: dict[str, str], job: str) -> None:
    found = world(environ)
    assert (found.rank, found.size, found.device_id, found.is_one_host) == (3, 4, 1, True)
    assert found.source in environ and found.source.endswith("SIZE")
    assert _env.read(environ).job_id == job


@pytest.mark.parametrize(
    "own, rank, size",
    [({"RANK_SIZE": "8", "RANK_ID": "7"}, 7, 8), ({"RANK_SIZE": "1"}, 0, 1), ({"RANK_ID": "0"}, 0, 1)],
    ids=str,
)
def test_variables_of_the_launch_script_have_precedence(own: dict[str, str], rank: int, size: int) -> None:
    assert (world({**OPEN_MPI, **own}).rank, world({**OPEN_MPI, **own}).size) == (rank, size)
    assert _mpirun.variables({**OPEN_MPI, **own}) == {}


def test_the_device_and_the_job_may_be_set() -> None:
    made = _mpirun.variables({**OPEN_MPI, "ASCEND_DEVICE_ID": "5", "JOB_ID": "mine"})
    assert made == {"RANK_ID": "3", "RANK_SIZE": "4"}


@pytest.mark.parametrize("lacks", ["TORCHELASTIC_RUN_ID", "LOCAL_RANK"])
def test_rank_and_world_size_of_other_programs_do_not_count(lacks: str) -> None:
    assert world({name: value for name, value in TORCHRUN.items() if name != lacks}).size == 1


def test_ranks_on_several_hosts_need_a_rank_table(tmp_path: pathlib.Path) -> None:
    environ = {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    with pytest.raises(
        ValueError, match="COMM_WORLD_SIZE=4 and OMPI_COMM_WORLD_LOCAL_SIZE=2: .*export RANK_TABLE_FILE"
    ):
        world(environ)
    devices = [
        [{"device_id": str(d), "device_ip": f"10.1.{s}.{d + 1}", "rank_id": str(2 * s + d)} for d in (0, 1)]
        for s in (0, 1)
    ]
    servers = [{"server_id": f"10.0.0.{s + 1}", "device": devices[s]} for s in (0, 1)]
    table = {"version": "1.0", "status": "completed", "server_count": "2", "server_list": servers}
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    found = world({**environ, "RANK_TABLE_FILE": str(path)})
    assert (found.rank, found.size, found.local_rank, found.server_ids) == (3, 4, 1, ("10.0.0.1", "10.0.0.2"))
    with pytest.raises(ValueError, match="OMPI_COMM_WORLD_SIZE=8 contradicts RANK_TABLE_FILE=.* Start 4 ranks, or use"):
        world({**environ, "OMPI_COMM_WORLD_SIZE": "8", "RANK_TABLE_FILE": str(path)})


def test_a_value_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="RANK_SIZE='many' is not allowed"):
        world({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "many", "OMPI_COMM_WORLD_LOCAL_SIZE": "many"})
