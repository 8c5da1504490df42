"""NPUStrategy on several ranks comes to the weights of one process that trains on all their rows."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Callable, Dict, List

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import npu_init
from tests.distributed.conftest import IS_NIGHTLY
from tests.distributed.test_training import SCRIPTS, forked
from tests.marks import IN_FORKS, OF_VERSION_1

VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
# The ways of the matrix, and those that the nightly run has too.
ESTIMATORS = ["estimator_adam"] + IS_NIGHTLY * [
    "estimator_by_hand",
    "npu_estimator_wrapped",
    "estimator",
    "npu_estimator",
    "npu_estimator_adam",
]
KERAS = ["keras_adam", "keras_wrapped"] + IS_NIGHTLY * ["keras", "keras_dataset"]
LOOPS = ["loop", "loop_function", "reduce"] + IS_NIGHTLY * ["loop_adam"]
# TensorFlow 2.15 is the last one with Estimators, and with Keras in graphs; TensorFlow 1.15 is tested in graphs.
WAYS = {
    "graph": (ESTIMATORS + KERAS[: None if IS_NIGHTLY else 1] if VERSION <= (2, 15) else []) + LOOPS,
    "eager": KERAS + LOOPS + ["keras_clip"] if VERSION >= (2, 0) else [],
}
if VERSION >= (2, 0) and VERSION != (2, 15) and not IS_NIGHTLY:
    WAYS["eager"] = ["keras_adam", "loop_function"]  # TensorFlow 2.15 runs the others by day
MARKS = {"graph": OF_VERSION_1, "eager": [pytest.mark.smoke, *IN_FORKS]}
CASES = [pytest.param(style, way, marks=MARKS[style]) for style in WAYS for way in WAYS[style]]
FOUR = ("graph", ["estimator_adam", "loop"]) if VERSION < (2, 0) else ("eager", ["keras_adam", "loop"])
Run = Callable[[str, int], List[Dict[str, Any]]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Run:
    """Return the result of each of several ranks, by way of training."""
    known: dict[tuple[str, int], list[dict[str, Any]]] = {}

    def ranks(style: str, size: int) -> list[dict[str, Any]]:
        if (style, size) not in known:
            folder: pathlib.Path = tmp_path_factory.mktemp("strategy")
            ways = WAYS[style] if size < 4 else FOUR[1]
            forked(size, str(SCRIPTS / "strategy_ranks.py"), str(folder), style, *ways, folder=folder)
            known[style, size] = [
                json.loads((folder / f"rank_{rank}_of_{size}.json").read_text()) for rank in range(size)
            ]
        return known[style, size]

    return ranks


@pytest.mark.parametrize("style, way", CASES)
def test_ranks_have_the_result_of_one_process(style: str, way: str, run: Run) -> None:
    (one,), two = run(style, 1), run(style, 2)
    for rank in two:
        assert rank[way].keys() == one[way].keys()
        for name, value in one[way].items():
            np.testing.assert_allclose(rank[way][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
    trained = [name for name in one[way] if name.startswith(("weight", "kernel", "head"))]
    assert way == "reduce" or trained and all(two[0][way][name] == two[1][way][name] for name in trained)  # bit by bit


@pytest.mark.once
@pytest.mark.nightly
def test_four_ranks(run: Run) -> None:
    (one,), four = run(FOUR[0], 1), run(FOUR[0], 4)
    for way in FOUR[1]:
        for name, value in one[way].items():
            np.testing.assert_allclose(four[3][way][name], value, rtol=1e-4, atol=1e-5, err_msg=way + " " + name)


def test_run_config_without_estimator_raises() -> None:
    if not hasattr(tf.compat.v1, "estimator"):
        with pytest.raises(RuntimeError, match="needs tf.estimator"):
            npu_init.NPURunConfig(train_distribute=npu_init.npu_strategy.NPUStrategy())
    else:
        config = npu_init.NPURunConfig(train_distribute=npu_init.npu_strategy.NPUStrategy())
        assert config.train_distribute.num_replicas_in_sync == 1
