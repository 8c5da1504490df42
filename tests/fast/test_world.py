"""The ranks of a job from variables and rank tables of every dialect, and contradictions between them."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Sequence

import pytest

from npu_shim.distributed.world import THIS_HOST, world, world_size

CHIEF = {"CM_CHIEF_IP": "10.0.0.1", "CM_CHIEF_PORT": "6000", "CM_CHIEF_DEVICE": "0"}


def server_list(*servers: Sequence[int], **more: Any) -> dict[str, Any]:
    """Return a server_list table with these device ids per server; ranks in order."""
    ranks = iter(range(99))
    entries = [
        {
            "server_id": f"10.0.0.{s + 1}",
            "device": [
                {"device_id": str(d), "device_ip": f"192.168.{s}.{d + 1}", "rank_id": str(next(ranks))} for d in devices
            ],
        }
        for s, devices in enumerate(servers)
    ]
    return {"version": "1.0", "status": "completed", "server_count": str(len(servers)), "server_list": entries, **more}


def pods(**devices: Sequence[int]) -> dict[str, Any]:
    """Return a pod table with these device ids by pod name."""
    return {
        "status": "completed",
        "group_count": "1",
        "group_list": [
            {
                "group_name": "worker",
                "device_count": str(sum(map(len, devices.values()))),
                "instance_count": str(len(devices)),
                "instance_list": [
                    {
                        "pod_name": name,
                        "server_id": f"host-{name}",
                        "devices": [{"device_id": str(d), "device_ip": f"192.168.{p}.{d + 1}"} for d in ids],
                    }
                    for p, (name, ids) in enumerate(devices.items())
                ],
            }
        ],
    }


@pytest.fixture
def table(tmp_path: pathlib.Path) -> Any:
    """Return a function table(data) that writes a rank table and returns its path."""
    path = tmp_path / "table.json"

    def write(data: Any) -> str:
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return str(path)

    return write


# --- without a rank table ------------------------------------------------------
@pytest.mark.parametrize(
    "environ, rank, size, device_id, source",
    [
        ({}, 0, 1, 0, "the defaults of one process"),
        ({"ASCEND_DEVICE_ID": "3"}, 0, 1, 3, "the defaults of one process"),
        ({"RANK_ID": "2", "RANK_SIZE": "4", "ASCEND_DEVICE_ID": "2"}, 2, 4, 2, "RANK_SIZE"),
        ({"RANK_SIZE": "1", "RANK_TABLE_FILE": "/no/such.json"}, 0, 1, 0, "RANK_SIZE"),
        ({**CHIEF, "CM_WORKER_SIZE": "1"}, 0, 1, 0, "RANK_SIZE"),
        ({**CHIEF, "CM_WORKER_SIZE": "8", "ASCEND_DEVICE_ID": "5"}, 5, 8, 5, "CM_CHIEF_IP"),
        ({**CHIEF, "CM_WORKER_SIZE": "8", "CM_WORKER_IP": "10.0.0.1", "DEVICE_ID": "5"}, 5, 8, 5, "CM_CHIEF_IP"),
    ],
)
def test_ranks_of_one_host(environ: dict[str, str], rank: int, size: int, device_id: int, source: str) -> None:
    found = world(environ)
    assert (found.rank, found.size, found.device_id, found.source) == (rank, size, device_id, source)
    assert (found.local_rank, found.local_size, found.is_one_host, found.table) == (rank, size, True, None)
    assert found.is_distributed == (size > 1) and world_size(environ) == size
    assert found.server_ids == ((THIS_HOST,) if source != "CM_CHIEF_IP" else ("10.0.0.1",))


def test_workers_of_several_hosts_are_counted_but_not_numbered() -> None:
    environ = {**CHIEF, "CM_WORKER_SIZE": "16", "CM_WORKER_IP": "10.0.0.2", "ASCEND_DEVICE_ID": "1"}
    assert world_size(environ) == 16
    with pytest.raises(
        ValueError,
        match="CM_CHIEF_IP='10.0.0.1' with CM_WORKER_SIZE=16 lets the NPUs number"
        ".*export RANK_ID and RANK_TABLE_FILE .npu-shim ranktable make creates one.",
    ):
        world(environ)


@pytest.mark.parametrize("device", [{}, {"ASCEND_DEVICE_ID": "8"}])
def test_workers_of_one_host_are_numbered_by_their_device(device: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="There export ASCEND_DEVICE_ID as this process's rank, 0 to 7"):
        world({**CHIEF, "CM_WORKER_SIZE": "8", **device})


# --- with a rank table ---------------------------------------------------------
def test_rank_in_a_server_list(table: Any) -> None:
    path = table(server_list([0, 1], [4, 5, 6]))
    found = world({"RANK_TABLE_FILE": path, "RANK_ID": "3", "ASCEND_DEVICE_ID": "0"})
    assert (found.rank, found.size, found.local_rank, found.local_size) == (3, 5, 1, 3)
    assert found.device_id == 5  # the table beats ASCEND_DEVICE_ID
    assert found.servers == ("10.0.0.1",) * 2 + ("10.0.0.2",) * 3
    assert found.server_ids == ("10.0.0.1", "10.0.0.2")
    assert found.local_ranks == (2, 3, 4) and found.ranks_on_server_of(0) == (0, 1) and not found.is_one_host
    assert found.source == f"RANK_TABLE_FILE={path}" and found.table is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.rank = 0  # type: ignore[misc]


def test_ranks_that_alternate_between_servers(table: Any) -> None:
    data = server_list([0, 1], [0, 1])
    for server, ranks in zip(data["server_list"], [("0", "2"), ("3", "1")]):
        for device, rank in zip(server["device"], ranks):
            device["rank_id"] = rank
    found = world({"RANK_TABLE_FILE": table(data), "RANK_ID": "3", "RANK_SIZE": "4"})
    assert (found.local_ranks, found.local_rank, found.device_id) == ((1, 3), 1, 0)


@pytest.mark.parametrize(
    "environ, rank, device_id",
    [
        ({"RANK_ID": "3"}, 3, 1),
        ({"POD_NAME": "b", "DEVICE_ID": "1"}, 3, 1),
        ({"RANK_ID": "a", "ASCEND_DEVICE_ID": "0", "RANK_SIZE": "4"}, 0, 0),
        ({"POD_NAME": "b", "RANK_ID": "2"}, 2, 0),
        ({"POD_NAME": "not of this table", "RANK_ID": "2"}, 2, 0),
    ],
)
def test_process_of_a_pod(environ: dict[str, str], rank: int, device_id: int, table: Any) -> None:
    found = world({"RANK_TABLE_FILE": table(pods(a=[0, 1], b=[0, 1])), **environ})
    assert (found.rank, found.size, found.device_id) == (rank, 4, device_id)


@pytest.mark.parametrize(
    "environ, rank",
    [
        ({"RANK_ID": "0", "DEVICE_ID": "3"}, 3),  # a launch script that exports RANK_ID=0 once, for the pod named 0
        ({"RANK_ID": "3", "DEVICE_ID": "3"}, 3),  # one that counts ranks
        ({"RANK_ID": "0", "DEVICE_ID": "0"}, 0),
        ({"RANK_ID": "3"}, 3),
        ({"RANK_ID": "1", "DEVICE_ID": "7"}, 1),  # the table beats DEVICE_ID
    ],
)
def test_pod_with_a_number_as_name(environ: dict[str, str], rank: int, table: Any) -> None:
    assert world({"RANK_TABLE_FILE": table(pods(**{"0": [0, 1, 2, 3]})), "RANK_SIZE": "4", **environ}).rank == rank


def test_pod_with_one_device_needs_no_device_variable(table: Any) -> None:
    assert world({"RANK_TABLE_FILE": table(pods(a=[0], b=[3])), "POD_NAME": "b"}).device_id == 3


def test_two_pods_of_one_server_share_a_host(table: Any) -> None:
    data = pods(a=[0, 1], b=[4, 5])
    for instance in data["group_list"][0]["instance_list"]:
        instance["server_id"] = "10.0.0.1"
    found = world({"RANK_TABLE_FILE": table(data), "RANK_ID": "2"})
    assert (found.local_rank, found.local_size, found.is_one_host) == (2, 4, True)


REJECTED = [
    (
        {"RANK_ID": "0", "RANK_SIZE": "8"},
        server_list([0, 1]),
        "RANK_SIZE=8 contradicts RANK_TABLE_FILE='{}', which has 2 ranks. Export RANK_SIZE=2, unset it, or use the "
        "rank table of this job.",
    ),
    ({"RANK_SIZE": "1"}, server_list([0, 1]), "RANK_SIZE=1 contradicts RANK_TABLE_FILE='{}', which has 2 ranks."),
    (
        {"RANK_ID": "2"},
        server_list([0, 1]),
        "RANK_ID=2 is not in RANK_TABLE_FILE='{}', which has the ranks 0 to 1. Export one of them as RANK_ID.",
    ),
    (
        {},
        server_list([0, 1]),
        "RANK_TABLE_FILE='{}' has 2 ranks and needs RANK_ID, which is not set. Export RANK_ID as this process's rank, "
        "0 to 1.",
    ),
    ({"RANK_SIZE": "2"}, server_list([0, 1]), "RANK_TABLE_FILE='{}' has 2 ranks and needs RANK_ID, which is not set"),
    (
        {"RANK_ID": "0"},
        server_list([0, 1], status="initializing"),
        "RANK_TABLE_FILE='{}' has \"status\": 'initializing', not 'completed'. Start the job when the table is "
        "complete.",
    ),
    (
        {"RANK_ID": "0"},
        server_list([0, 1], server_count="3"),
        "RANK_TABLE_FILE='{}' cannot be used: {}: $.server_count: is '3', but there is 1 entry",
    ),
    ({"RANK_ID": "0"}, "{", "RANK_TABLE_FILE='{}' cannot be used: {}: line 1, column 2: is not JSON"),
    (
        {"RANK_ID": "8p"},
        pods(a=[0, 1], b=[0]),
        "RANK_ID='8p' is not in RANK_TABLE_FILE='{}', which has 'a', 'b'. Export RANK_ID as this process's rank, 0 to "
        "2, or RANK_ID as one of its pods.",
    ),
    ({"RANK_ID": "8p"}, server_list([0, 1]), "RANK_ID='8p' is not in RANK_TABLE_FILE='{}', which has no pods."),
    (
        {"POD_NAME": "a"},
        pods(a=[0, 1]),
        "POD_NAME='a' in RANK_TABLE_FILE='{}' has devices 0, 1; the device of this process is not set. Export "
        "DEVICE_ID as one of "
        "them, or RANK_ID",
    ),
    ({"POD_NAME": "a", "DEVICE_ID": "7"}, pods(a=[0, 1]), "has devices 0, 1; the device of this process is 7"),
    (
        {"POD_NAME": "a", "RANK_ID": "2"},
        pods(a=[0, 1], b=[0]),
        "POD_NAME='a' and RANK_ID=2 contradict each other: in RANK_TABLE_FILE='{}' rank 2 is in pod 'b'. Unset one of "
        "them.",
    ),
]


@pytest.mark.parametrize("environ, data, text", REJECTED, ids=[str(r[0]) + r[2][:40] for r in REJECTED])
def test_contradictions_name_variable_value_and_file(environ: dict[str, str], data: Any, text: str, table: Any) -> None:
    path = table(data)
    wanted = text.replace("{}", path)
    with pytest.raises(ValueError) as caught:
        world({"RANK_TABLE_FILE": path, **environ})
    assert wanted in str(caught.value)


def test_missing_table(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "none.json")
    with pytest.raises(ValueError) as caught:
        world_size({"RANK_TABLE_FILE": path})
    assert str(caught.value) == (
        f"RANK_TABLE_FILE={path!r} cannot be used: No such file or directory. Correct it, or create one with npu-shim "
        "ranktable make."
    )


def test_changed_table_is_read_again(table: Any) -> None:
    path = table(server_list([0]))
    assert world_size({"RANK_TABLE_FILE": path}) == 1
    table(server_list([0, 1]))
    assert world_size({"RANK_TABLE_FILE": path}) == 2
