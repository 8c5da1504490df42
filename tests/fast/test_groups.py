"""Groups of ranks, HCCL's functions for them, and gradient buckets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from npu_shim.hccl.manage import api as manage
from npu_shim.hccl.split import api as split

from npu_shim.distributed import gradient_buckets, groups, ranks
from npu_shim.distributed.gradient_buckets import bucket_indices
from npu_shim.distributed.world import WORLD


@pytest.fixture(autouse=True)
def empty_registries(monkeypatch: Any) -> None:
    """Start without groups and strategies, as rank 2 of 4."""
    monkeypatch.setattr(groups, "_groups", {})
    monkeypatch.setattr(gradient_buckets, "_ends", {})
    monkeypatch.setattr(gradient_buckets, "_percentages", {})
    for name in ("RANK_TABLE_FILE", "CM_CHIEF_IP", "CM_WORKER_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RANK_SIZE", "4")
    monkeypatch.setenv("RANK_ID", "2")


# --- groups --------------------------------------------------------------------
def test_world_group() -> None:
    assert (manage.get_rank_size(), manage.get_rank_id(), manage.get_local_rank_size(), manage.get_local_rank_id()) == (
        4,
        2,
        4,
        2,
    )
    assert ranks.find_group() == groups.Group(WORLD, (0, 1, 2, 3)) and ranks.find_group(WORLD).size == 4
    assert manage.get_world_rank_from_group_rank(WORLD, 3) == manage.get_group_rank_from_world_rank(3, WORLD) == 3


@pytest.mark.parametrize("named", [[1, 2], [2, 1], (2, 1)])
def test_group_numbers_ranks_by_world_rank(named: Any) -> None:
    manage.create_group("g", 2, named)
    assert (manage.get_rank_size("g"), manage.get_rank_id("g")) == (2, 1)
    assert (manage.get_local_rank_size("g"), manage.get_local_rank_id("g")) == (2, 1)
    assert [manage.get_world_rank_from_group_rank("g", r) for r in (0, 1)] == [1, 2]
    assert [manage.get_group_rank_from_world_rank(r, "g") for r in (1, 2)] == [0, 1]
    manage.destroy_group("g")
    with pytest.raises(
        ValueError, match="group='g' does not exist; the groups are 'hccl_world_group'. Create it with create"
    ):
        manage.get_rank_size("g")


def test_local_ranks_of_a_group_are_on_this_server(monkeypatch: Any, tmp_path: Any) -> None:
    path = tmp_path / "table.json"
    servers = [
        {
            "server_id": f"s{server}",
            "device": [
                {"device_id": str(device), "device_ip": f"10.0.{server}.{device}", "rank_id": str(2 * server + device)}
                for device in (0, 1)
            ],
        }
        for server in (0, 1)
    ]
    table = {"version": "1.0", "status": "completed", "server_count": "2", "server_list": servers}
    path.write_text(json.dumps(table))
    monkeypatch.setenv("RANK_TABLE_FILE", str(path))
    manage.create_group("g", 3, [0, 1, 2])
    assert (manage.get_local_rank_size("g"), manage.get_local_rank_id("g"), manage.get_rank_id("g")) == (1, 0, 2)
    assert (manage.get_local_rank_size(), manage.get_local_rank_id()) == (2, 0)


WRONG = [
    (lambda: manage.create_group(3, 1, [2]), TypeError, "group=3 is not allowed. Pass a str"),
    (lambda: manage.create_group("", 1, [2]), ValueError, "group='' is not allowed. Use a name of 1 to"),
    (lambda: manage.create_group("é" * 64, 1, [2]), ValueError, "1 to 127 bytes other than hccl_world_group"),
    (lambda: manage.create_group(WORLD, 1, [2]), ValueError, "group='hccl_world_group' is not allowed"),
    (lambda: manage.create_group("g", 1, 2), TypeError, "rank_ids=2 is not allowed. Pass a list of int"),
    (lambda: manage.create_group("g", 1, [True]), TypeError, r"rank_ids=\[True\] is not allowed"),
    (lambda: manage.create_group("g", 2, [2]), ValueError, r"rank_num=2 and rank_ids=\[2\] do not match"),
    (lambda: manage.create_group("g", 0, []), ValueError, r"rank_num=0 and rank_ids=\[\] do not match"),
    (lambda: manage.create_group("g", 2, [2, 2]), ValueError, "Name rank_num ranks in rank_ids, each once"),
    (
        lambda: manage.create_group("g", 3, [2, 4, -1]),
        ValueError,
        r"rank_ids=\[2, 4, -1\] is not allowed: this job has the ranks 0 to 3 \(RANK_SIZE\), but not 4, -1",
    ),
    (
        lambda: manage.create_group("g", 2, [0, 1]),
        ValueError,
        r"group='g' with rank_ids=\[0, 1\] does not contain rank 2. Call create_group in the ranks",
    ),
    (
        lambda: [manage.create_group("g", 1, [2]), manage.create_group("g", 2, [1, 2])],
        ValueError,
        "group='g' already exists with the ranks 2. Use another name, or call destroy_group first",
    ),
    (lambda: manage.destroy_group("g"), ValueError, "group='g' does not exist"),
    (lambda: manage.destroy_group(WORLD), ValueError, "other than hccl_world_group"),
    (lambda: manage.get_rank_id("h"), ValueError, "group='h' does not exist"),
    (lambda: manage.get_rank_id(7), TypeError, "group=7 is not allowed. Pass a str"),
    (
        lambda: manage.get_world_rank_from_group_rank(WORLD, 4),
        ValueError,
        "group_rank_id=4 is not allowed: group 'hccl_world_group' has the ranks 0 to 3",
    ),
    (
        lambda: manage.get_world_rank_from_group_rank(WORLD, "0"),
        TypeError,
        "group_rank_id='0' is not allowed. Pass an int",
    ),
    (lambda: manage.get_group_rank_from_world_rank(1.0, WORLD), TypeError, "world_rank_id=1.0 is not allowed"),
    (
        lambda: [manage.create_group("g", 2, [3, 2]), manage.get_group_rank_from_world_rank(0, "g")],
        ValueError,
        "rank 0 is not in group 'g', which has the ranks 2, 3",
    ),
]


@pytest.mark.parametrize("call, error, text", WRONG, ids=[w[2] for w in WRONG])
def test_wrong_group_arguments(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# --- buckets -------------------------------------------------------------------
def test_default_buckets_are_those_of_hccl() -> None:
    assert bucket_indices([10] * 100) == [list(range(97)), [97, 98, 99]]  # 97 % is nearest to 96.54 %
    assert bucket_indices([1, 1000]) == [[0, 1]]
    assert bucket_indices([5]) == [[0]] and bucket_indices([]) == [] and bucket_indices([0, 0]) == [[0], [1]]


@pytest.mark.parametrize(
    "ends, wanted", [([3], [[0, 1, 2, 3]]), ([0, 3], [[0], [1, 2, 3]]), ((1, 2, 3), [[0, 1], [2], [3]])]
)
def test_strategy_by_index(ends: Any, wanted: list[list[int]]) -> None:
    split.set_split_strategy_by_idx(ends)
    assert bucket_indices([8, 8, 8, 8]) == wanted


@pytest.mark.parametrize(
    "sizes, shares, wanted",
    [
        ([90, 30, 30], [60, 20, 20], [[0], [1], [2]]),
        ([10] * 10, [50, 50], [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        ([10] * 10, [100], [list(range(10))]),
        ([100, 1, 1], [50, 25, 25], [[0], [1, 2]]),
        ([1, 1, 100], [50, 50], [[0, 1], [2]]),
        ([7], [25.5, 74.5], [[0]]),
    ],
)
def test_strategy_by_size(sizes: list[int], shares: list[float], wanted: list[list[int]]) -> None:
    split.set_split_strategy_by_size(shares)
    assert bucket_indices(sizes) == wanted


def test_strategy_belongs_to_its_group_and_size_has_precedence() -> None:
    manage.create_group("g", 1, [2])
    split.set_split_strategy_by_idx([0, 1], "g")
    assert bucket_indices([1, 1], "g") == [[0], [1]]
    split.set_split_strategy_by_size([100], "g")
    split.set_split_strategy_by_idx([0, 1], "g")
    assert bucket_indices([1, 1], "g") == [[0, 1]]
    manage.destroy_group("g")
    assert bucket_indices([10] * 100, "g") == bucket_indices([10] * 100)


def test_indices_that_do_not_match_the_gradients() -> None:
    split.set_split_strategy_by_idx([3, 8])
    with pytest.raises(
        ValueError,
        match=r"set_split_strategy_by_idx\(\[3, 8\]\) does not match the 5 gradients. Make 4 the last index",
    ):
        bucket_indices([1] * 5)


WRONG_SPLITS = [
    (lambda: split.set_split_strategy_by_idx("3"), TypeError, "idxList='3' is not allowed. Pass a list of int"),
    (lambda: split.set_split_strategy_by_idx([-1, 3]), TypeError, "none negative"),
    (lambda: split.set_split_strategy_by_idx([]), ValueError, "1 to 8 increasing indices"),
    (lambda: split.set_split_strategy_by_idx([3, 3]), ValueError, "1 to 8 increasing indices"),
    (lambda: split.set_split_strategy_by_idx(list(range(9))), ValueError, "1 to 8 increasing indices"),
    (lambda: split.set_split_strategy_by_idx([3], "g"), ValueError, "group='g' does not exist"),
    (lambda: split.set_split_strategy_by_size(100), TypeError, "dataSizeList=100 is not allowed. Pass a list"),
    (lambda: split.set_split_strategy_by_size([True]), TypeError, r"dataSizeList=\[True\] is not allowed"),
    (lambda: split.set_split_strategy_by_size([50, 40]), ValueError, "1 to 8 positive percentages that sum to 100"),
    (lambda: split.set_split_strategy_by_size([110, -10]), ValueError, "positive percentages"),
    (lambda: split.set_split_strategy_by_size([float("nan")]), ValueError, "positive percentages"),
    (lambda: split.set_split_strategy_by_size([12.5] * 8, "g"), ValueError, "group='g' does not exist"),
]


@pytest.mark.parametrize("call, error, text", WRONG_SPLITS, ids=[w[2] for w in WRONG_SPLITS])
def test_wrong_split_arguments(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
