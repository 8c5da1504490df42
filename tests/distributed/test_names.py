"""Every name that averages gradients trains a CNN on two ranks as on one process; the device is started by hand on each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.distributed.conftest import IS_NIGHTLY
from tests.distributed.test_training import results
from tests.marks import OF_VERSION_1

NAMES = [
    "wrapper",
    "class",
    "tf_optimizer",
    "npu_optimizer",
    "npu_optimizer_scale",
    "loss_scale",
    "sharding",
    "allreduce",
]
# By night, each name with each optimizer.
WAYS = [
    f"{name}_{kind}" for name in NAMES for kind in ("sgd", "adam") if IS_NIGHTLY or kind == "sgd" or name == "class"
]

pytestmark = OF_VERSION_1


@pytest.fixture(scope="module")
def trained(tmp_path_factory: Any) -> dict[int, list[dict[str, Any]]]:
    """By number of ranks what each of them has come to, by way."""
    return results("cnn_ranks.py", WAYS, tmp_path_factory)


@pytest.mark.parametrize("way", WAYS)
def test_two_ranks_train_the_cnn_like_one_process(way: str, trained: dict[int, list[dict[str, Any]]]) -> None:
    (one,), two = ([found[way] for found in trained[ranks]] for ranks in (1, 2))
    assert two[0] == two[1]  # bit by bit
    assert len(one["losses"]) == 50 and one["losses"][-1] < 0.7 * one["losses"][0]
    np.testing.assert_allclose(two[0]["losses"], one["losses"], rtol=2e-4)
    assert two[0]["values"].keys() == one["values"].keys() and one["values"]["global_step"] == 50
    for name, value in one["values"].items():
        # Adam divides by the root of squares that may be next to nothing, which makes more of how sums are rounded.
        np.testing.assert_allclose(two[0]["values"][name], value, rtol=1e-3, atol=2e-4, err_msg=name)


def test_all_interfaces_of_one_optimizer_have_one_result(trained: dict[int, list[dict[str, Any]]]) -> None:
    for kind in ("sgd", "adam"):
        ways = [f"{name}_{kind}" for name in NAMES if f"{name}_{kind}" in WAYS]
        ends = [trained[2][0][way]["values"]["dense_kernel"] for way in ways]
        for end in ends[1:]:
            np.testing.assert_allclose(end, ends[0], rtol=1e-3, atol=2e-4)


def test_device_starts_on_every_rank_and_overflow_is_shared(tmp_path_factory: Any) -> None:
    found = results("system_ranks.py", [], tmp_path_factory)
    assert [rank["ranks"] for rank in found[2]] == [[0, 2, 0, 2], [1, 2, 1, 2]] and found[1][0]["ranks"] == [
        0,
        1,
        0,
        1,
    ]
    assert [rank["sum"] for rank in found[2]] == 2 * [[2, 1]] and found[1][0]["sum"] == [1, 0]
    for rank in found[1] + found[2]:  # global step, scale and weight: the second step is left out by all
        steps = np.array(rank["steps"])
        assert steps[:, 0].tolist() == [1, 1, 2, 3] and steps[0, 1] == 16 and (steps[1:, 1] < 16).all()
        np.testing.assert_allclose(steps[:, 2], [0.8, 0.8, 0.6, 0.4], rtol=1e-5)
