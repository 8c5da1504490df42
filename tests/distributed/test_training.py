"""Several ranks end with the same weights as one process that trains on all rows."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import npu_init
from tests.distributed import forks
from tests.distributed.conftest import IS_NIGHTLY
from tests.marks import OF_VERSION_1

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
WAYS = ["wrapper", "class", "npu_optimizer", "npu_optimizer_scale", "sharding", "by_hand", "split", "loss_scale"]
# Readers of gradients before an optimizer applies them, in all orders
ORDERS = ["_".join(order) for order in itertools.permutations(("log", "clip", "unscale", "add"))]
READERS = ["wrapper_log_clip_unscale_add", "class_add_unscale_clip_log", "horovod_clip_log_add_unscale"]
READERS += IS_NIGHTLY * [f"{kind}_{order}" for kind in ("wrapper", "class", "horovod") for order in ORDERS]
KERAS_WAYS = ["wrapper", "class", "class_clip", "wrapper_clip", "name_adam"]
KERAS_WAYS += IS_NIGHTLY * ["name", "wrapper_adam", "class_adam"]


def environment() -> dict[str, str]:
    """Return the environment without variables of a job.

    The wait for a rank is long: TensorFlow may take a minute to delete the iterators of a strategy.
    """
    made = {
        **os.environ,
        "NPU_SHIM_FALLBACK": "silent",
        "NPU_SHIM_COLLECTIVE_TIMEOUT": "200",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    for name in ("RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE", "TF_CONFIG", "JOB_ID"):
        made.pop(name, None)
    return made


def launch_command(*arguments: str) -> list[str]:
    """Return the command that runs npu-shim launch with arguments."""
    return [sys.executable, "-m", "npu_shim", "launch", *arguments]


def launched(ranks: int, *command: str, folder: pathlib.Path) -> str:
    """Launch a script; return the output of the first rank and of the launcher.

    Args:
        ranks: number of ranks.
        command: the script and its arguments.
        folder: for the logs.
    """
    done = subprocess.run(
        launch_command("--ranks", str(ranks), "--log-dir", str(folder / f"logs_{ranks}"), "--timeout", "300", *command),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def forked(ranks: int, *command: str, folder: pathlib.Path) -> str:
    """Run a script on preloaded processes without the launcher; return the output of the first rank.

    If TensorFlow is not safe in a fork, the launcher starts new processes.
    """
    if not forks.is_safe():
        return launched(ranks, *command, folder=folder)
    return forks.run_ranks(ranks, *command, folder=folder / f"logs_{ranks}", environ=environment())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: Any) -> dict[int, list[dict[str, Any]]]:
    """By number of ranks what each of them has come to, by way of averaging."""
    return results("data_parallel.py", WAYS, tmp_path_factory)


@pytest.fixture(scope="module")
def trained_keras(tmp_path_factory: Any) -> dict[int, list[dict[str, Any]]]:
    """The same for Keras."""
    return results("keras_ranks.py", KERAS_WAYS, tmp_path_factory)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: Any) -> dict[int, list[dict[str, Any]]]:
    """The same for readers of gradients."""
    return results("gradient_readers_v1.py", READERS, tmp_path_factory)


def results(script: str, ways: list[str], tmp_path_factory: Any) -> dict[int, list[dict[str, Any]]]:
    """Return the results of one process under 1, and of two ranks under 2."""
    found: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for ranks in (1, 2):
        folder = tmp_path_factory.mktemp("ranks")
        forked(ranks, str(SCRIPTS / script), str(folder), *ways, folder=folder)
        found[ranks] += [json.loads((folder / f"rank_{rank}_of_{ranks}.json").read_text()) for rank in range(ranks)]
    return found


@pytest.mark.parametrize("way", [pytest.param(way, marks=OF_VERSION_1) for way in WAYS])
def test_ranks_train_like_one_process_on_all_rows(way: str, trained: dict[int, list[dict[str, Any]]]) -> None:
    (one,), two = ([found[way] for found in trained[ranks]] for ranks in (1, 2))
    for rank in two:
        np.testing.assert_allclose(rank["losses"], one["losses"], rtol=2e-5)
        assert rank["values"].keys() == one["values"].keys()
        for name, value in one["values"].items():
            np.testing.assert_allclose(rank["values"][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    assert one["losses"][-1] < 0.9 * one["losses"][0]
    assert all(rank == two[0] for rank in two)  # bit by bit


@pytest.mark.parametrize("way", KERAS_WAYS)
def test_keras_trains_on_ranks_like_on_one_process(way: str, trained_keras: dict[int, list[dict[str, Any]]]) -> None:
    (one,), two = ([found[way] for found in trained_keras[ranks]] for ranks in (1, 2))
    assert all(rank["weights"] == two[0]["weights"] for rank in two)
    for several, alone in zip(two[0]["weights"], one["weights"]):
        np.testing.assert_allclose(several, alone, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.mean([rank["loss"] for rank in two], axis=0), one["loss"], rtol=1e-4)
    assert one["loss"][-1] < one["loss"][0]


@pytest.mark.parametrize("way", [pytest.param(way, marks=OF_VERSION_1) for way in READERS])
def test_readers_of_gradients_see_those_of_one_process(way: str, readers: dict[int, list[dict[str, Any]]]) -> None:
    (one,), two = ([found[way] for found in readers[ranks]] for ranks in (1, 2))
    for rank in two:
        np.testing.assert_allclose(rank["logs"], one["logs"], rtol=1e-4)
        for several, alone in zip(rank["weights"], one["weights"]):
            np.testing.assert_allclose(several, alone, rtol=1e-4, atol=1e-6)


@pytest.mark.once_tf115
def test_many_collectives_run_in_any_order_with_different_names(tmp_path: pathlib.Path) -> None:
    assert "all of them" in forked(2, str(SCRIPTS / "many.py"), folder=tmp_path)


def test_estimator_trains_on_ranks_like_on_one_process_for_any_steps_per_run(tmp_path_factory: Any) -> None:
    if not hasattr(tf.compat.v1, "estimator"):
        with pytest.raises(RuntimeError, match="needs tf.estimator"):
            npu_init.NPUEstimator(None)
        return
    found = results("estimator_loops.py", [], tmp_path_factory)
    ends = [rank[steps] for ranks in (1, 2) for rank in found[ranks] for steps in ("1", "10")]
    assert [end["step"] for end in ends] == [40] * 6
    np.testing.assert_allclose([end["w"] for end in ends], ends[0]["w"], rtol=1e-6)
