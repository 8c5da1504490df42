"""The ranks of processes that mpirun, srun or torchrun starts."""

from __future__ import annotations

import json
import pathlib

import pytest

from npu_shim._host import host_env, mpirun
from npu_shim.distributed.ranktable.generate import Host, generate_server_list
from npu_shim.distributed.ranktable.writer import table_text
from npu_shim.distributed.world import world

OPEN_MPI, HYDRA, TORCHRUN, SRUN = (
    {**dict(zip(launcher[:4], ("3", "4", "1", "4"))), **{name: "a@1" for name in launcher.job}}
    for launcher in mpirun.LAUNCHERS
)
SRUN["SLURM_NODEID"] = "0"
ALL = [(OPEN_MPI, "a-1"), (HYDRA, "local"), (TORCHRUN, "a-1_a-1"), (SRUN, "a-1_a-1")]


@pytest.mark.parametrize("environ, job", ALL, ids=["open mpi", "hydra", "torchrun", "srun"])
def test_each_launcher_numbers_the_ranks_of_a_host(environ: dict[str, str], job: str) -> None:
    found = world(environ)
    assert (found.rank, found.size, found.device_id, found.is_one_host) == (3, 4, 1, True)
    assert found.source in environ and found.source.endswith(("SIZE", "SLURM_STEP_NUM_TASKS"))
    assert host_env.read_environment(environ).job_id == job


@pytest.mark.parametrize(
    "own, rank, size",
    [({"RANK_SIZE": "8", "RANK_ID": "7"}, 7, 8), ({"RANK_SIZE": "1"}, 0, 1), ({"RANK_ID": "0"}, 0, 1)],
    ids=str,
)
def test_variables_of_the_launch_script_have_precedence(own: dict[str, str], rank: int, size: int) -> None:
    assert (world({**OPEN_MPI, **own}).rank, world({**OPEN_MPI, **own}).size) == (rank, size)
    assert mpirun.rank_variables({**OPEN_MPI, **own}) == {}


def test_the_device_and_the_job_may_be_set() -> None:
    made = mpirun.rank_variables({**OPEN_MPI, "ASCEND_DEVICE_ID": "5", "JOB_ID": "mine"})
    assert made == {"RANK_ID": "3", "RANK_SIZE": "4"}


@pytest.mark.parametrize("lacks", ["TORCHELASTIC_RUN_ID", "LOCAL_RANK"])
def test_rank_and_world_size_of_other_programs_do_not_count(lacks: str) -> None:
    assert world({name: value for name, value in TORCHRUN.items() if name != lacks}).size == 1


def test_ranks_on_several_hosts_of_mpirun() -> None:
    for environ in ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, {**HYDRA, "MPI_LOCALNRANKS": "2"}):
        found = world(environ)
        assert (found.rank, found.local_rank, found.local_size) == (3, 1, 2)
        assert found.servers == ("host 0", "host 0", "host 1", "host 1")
        copies = {"RANK_ID": "3", "RANK_SIZE": "4"}  # as scripts export them
        assert world({**environ, **copies}).servers == found.servers
        for other in ("1", "3"):  # rank 3 would be local rank 1 of 1, or local rank 0 of 3
            wrong = {name: other if value == "2" else value for name, value in environ.items()}
            with pytest.raises(ValueError, match="so the ranks are not in the order of their hosts, or hosts have "):
                world(wrong)


def test_npus_on_several_hosts_need_a_rank_table() -> None:
    environ = {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    with pytest.raises(
        ValueError, match="COMM_WORLD_SIZE=4 and OMPI_COMM_WORLD_LOCAL_SIZE=2: .*make --mpi, and export RANK_TABLE_FILE"
    ):
        mpirun.raise_for_missing_table(environ)
    for other in (OPEN_MPI, {**environ, "RANK_TABLE_FILE": "t.json"}, {**environ, "RANK_ID": "0", "RANK_SIZE": "1"}):
        mpirun.raise_for_missing_table(other)


def test_ranks_of_mpirun_with_a_rank_table(tmp_path: pathlib.Path) -> None:
    environ = {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
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


@pytest.mark.parametrize(
    "counts, local_rank, node, error",
    [
        ("2(x2)", "1", "1", None),
        (
            "3,1",
            "0",
            "1",
            "SLURM_LOCALID=0 of 1 on this host contradicts RANK_TABLE_FILE=.*, in which rank 3 is local rank 1 ",
        ),
        (
            "2(x2)",
            "0",
            "1",
            "SLURM_LOCALID=0 of 2 on this host contradicts .* of 2 on '10.0.0.2'. Start the ranks host by",
        ),
        ("4", "3", "0", None),  # all servers of the table rehearsed on one host
    ],
)
def test_ranks_on_other_hosts_than_in_the_rank_table(
    counts: str, local_rank: str, node: str, error: str | None, tmp_path: pathlib.Path
) -> None:
    table, _ = generate_server_list([Host("10.0.0.1", (0, 1)), Host("10.0.0.2", (0, 1))], {})
    path = tmp_path / "table.json"
    path.write_text(table_text(table))
    environ = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": counts, "SLURM_LOCALID": local_rank, "SLURM_NODEID": node}
    if error is None:
        assert world({**environ, "RANK_TABLE_FILE": str(path)}).local_rank == 1
        return
    with pytest.raises(ValueError, match=error):
        world({**environ, "RANK_TABLE_FILE": str(path)})


def test_a_value_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="RANK_SIZE='many' is not allowed"):
        world({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "many", "OMPI_COMM_WORLD_LOCAL_SIZE": "many"})


# --- Slurm, PMI and PMIx ----------------------------------------------------------
def test_mpirun_and_torchrun_may_start_their_processes_with_srun() -> None:
    agent = {**SRUN, "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
    for inner in (OPEN_MPI, HYDRA, TORCHRUN):
        assert (world({**agent, **inner}).rank, world({**agent, **inner}).size) == (3, 4)


def test_a_batch_script_is_one_process() -> None:
    batch = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "8"}
    assert world({**batch, "SLURM_TASKS_PER_NODE": "4(x2)"}).size == 1


@pytest.mark.parametrize(
    "text, counts", [("4", (4,)), ("2(x3),1", (2, 2, 2, 1)), ("1,2(x2)", (1, 2, 2)), ("10(x1)", (10,))]
)
def test_tasks_per_node_are_expanded(text: str, counts: tuple[int, ...]) -> None:
    assert mpirun.expand_slurm_counts(text) == counts


def test_ranks_on_several_nodes_of_slurm() -> None:
    several = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "1,3", "SLURM_NODEID": "1", "SLURM_LOCALID": "2"}
    assert world(several).servers == ("node 0", "node 1", "node 1", "node 1")
    named = {**several, "SLURM_STEP_NODELIST": "gpu[07-08]"}
    assert world(named).servers == ("gpu07", "gpu08", "gpu08", "gpu08") and world(named).local_rank == 2
    with pytest.raises(ValueError, match="SLURM_PROCID=3 of 4 is SLURM_LOCALID=1 of 3 on its host, so .*=block"):
        world({**several, "SLURM_LOCALID": "1"})
    with pytest.raises(ValueError, match="SLURM_STEP_NUM_TASKS=4 and SLURM_STEP_TASKS_PER_NODE=1,3: .*make --slurm"):
        mpirun.raise_for_missing_table(several)
    for wrong in ({"SLURM_STEP_TASKS_PER_NODE": "all"}, {"SLURM_NODEID": "2"}, {"SLURM_NODEID": "x"}):
        with pytest.raises(
            ValueError, match="SLURM_STEP_TASKS_PER_NODE='.*' does not have the tasks of SLURM_NODEID='"
        ):
            world({**several, **wrong})


@pytest.mark.parametrize("environ, rank", [(OPEN_MPI, "OMPI_COMM_WORLD_RANK"), (SRUN, "SLURM_PROCID")])
def test_ranks_that_contradict_each_other(environ: dict[str, str], rank: str) -> None:
    assert world({**environ, "PMIX_RANK": "3"}).rank == 3
    with pytest.raises(ValueError, match=f"{rank}=3 contradicts PMIX_RANK=2. Unset the variables of the launcher"):
        world({**environ, "PMIX_RANK": "2"})
    assert world({**environ, "PMIX_RANK": "2", "RANK_ID": "0", "RANK_SIZE": "2"}).size == 2


def test_pmi_variables_of_srun_have_its_rank() -> None:
    assert world({**SRUN, "PMI_RANK": "3", "PMI_SIZE": "4"}).device_id == 1
    with pytest.raises(ValueError, match="SLURM_PROCID=3 contradicts PMI_RANK=1"):
        world({**SRUN, "PMI_RANK": "1", "PMI_SIZE": "4"})


@pytest.mark.parametrize("name", ["PMIX_RANK", "PMI_RANK"])
def test_a_rank_without_the_number_of_ranks_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=0 is the rank of this process, but the number of ranks or the local"):
        world({name: "0"})
    assert world({name: "0", "PMI_SIZE": "1"}).size == 1
    assert world({name: "0", "RANK_ID": "1", "RANK_SIZE": "2"}).rank == 1
