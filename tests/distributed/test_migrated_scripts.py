"""Migrated scripts on several ranks, unchanged by hand: those of tests/migrated."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.main import main

from tests.distributed.test_training import environment, forked, launch_command, launched
from tests.marks import OF_VERSION_1

HAS_ESTIMATOR = hasattr(tf.compat.v1, "estimator")
MIGRATED = pathlib.Path(__file__).resolve().parents[1] / "migrated" / "distributed"


WANTED = {"horovod_session": "horovod", "gradients_by_hand": "tf_strategy", "horovod_estimator": "horovod"}
THROUGH_THE_LAUNCHER = ("horovod_session", "mirrored_estimator")  # the others, as forks


@pytest.mark.once_tf115  # they build graphs
@pytest.mark.parametrize("name", [name for name in sorted(WANTED) if HAS_ESTIMATOR or "estimator" not in name])
def test_a_migrated_script_trains_on_two_ranks(name: str, tmp_path: pathlib.Path) -> None:
    assert main(["-i", str(MIGRATED / (name + ".py")), "-o", str(tmp_path / "out"), "-d", WANTED[name]]) == 0
    found: list[Any] = []
    for ranks in (1, 2):
        start = launched if ranks > 1 and name in THROUGH_THE_LAUNCHER else forked
        output = start(
            ranks, str(tmp_path / "out" / (name + ".py")), str(tmp_path / (f"model_{ranks}")), folder=tmp_path
        )
        found.append(json.loads([line for line in output.splitlines() if line[:1] in "[{"][-1]))
    check(name, *found)


# Scripts with strategies: their batches, which in an Estimator are those of one replica, and in Keras say so themselves.
STRATEGIES = {
    "mirrored_estimator": "batch(16)",
    "keras_in_scope": "batch_size = 8",
    "mirrored_project_style": "'batch_size': 8",
}


@pytest.mark.parametrize(
    "name, ranks",
    [
        pytest.param("keras_in_scope", 2),
        pytest.param("mirrored_estimator", 2, marks=OF_VERSION_1),
        *(pytest.param("mirrored_project_style", ranks, marks=pytest.mark.nightly) for ranks in (2, 4)),
    ],
)
def test_a_script_with_a_strategy_trains_on_ranks_as_the_original_on_the_whole_batch(
    name: str, ranks: int, tmp_path: pathlib.Path
) -> None:
    assert main(["-i", str(MIGRATED / (name + ".py")), "-o", str(tmp_path / "out"), "-d", "tf_strategy"]) == 0
    migrated = tmp_path / "out" / (name + ".py")
    if not HAS_ESTIMATOR:  # nor sessions for Keras: what it says is one error, on the first rank that comes to it
        done = subprocess.run(
            launch_command(
                "--ranks", str(ranks), "--timeout", "100", "--log-dir", str(tmp_path), str(migrated), str(tmp_path)
            ),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 1 and "Error" in done.stdout
        return
    size = int(STRATEGIES[name].rstrip(")").split("(")[-1].split(" ")[-1])
    original = (MIGRATED / (name + ".py")).read_text()
    assert original.count(STRATEGIES[name]) >= 1
    whole = tmp_path / "whole.py"
    whole.write_text(original.replace(STRATEGIES[name], STRATEGIES[name].replace(str(size), str(size * ranks)), 1))
    start = launched if name in THROUGH_THE_LAUNCHER else forked
    found = []
    for output in (
        forked(1, str(whole), str(tmp_path / "one"), folder=tmp_path),
        start(ranks, str(migrated), str(tmp_path / "several"), folder=tmp_path),
    ):
        found.append(json.loads([line for line in output.splitlines() if line[:1] == "{"][-1]))
    assert found[0].keys() == found[1].keys()
    for key, value in found[0].items():
        np.testing.assert_allclose(flat(found[1][key]), flat(value), rtol=2e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("towers", [1, 2])
@pytest.mark.once_tf115
def test_ranks_with_several_towers_have_one_collective_for_each_variable(towers: int, tmp_path: pathlib.Path) -> None:
    original, migrated = MIGRATED / "towers.py", tmp_path / "towers.py"
    assert main(["-i", str(original), "-o", str(migrated), "-d", "tf_strategy"]) == 0
    one, two = (
        json.loads(
            forked(ranks, str(script), "--num_gpus", str(towers), str(tmp_path), folder=tmp_path).split("\n")[-2]
        )
        for ranks, script in ((1, original), (2, migrated))
    )
    assert (one.pop("collectives"), two.pop("collectives")) == (0, 2)
    assert one.keys() == two.keys() == {"model/w", "model/b"}
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-5)


def flat(value: Any) -> list[float]:
    """All numbers in lists of lists."""
    return [number for part in value for number in flat(part)] if isinstance(value, list) else [value]


def momentum(ranks: int) -> float:
    """The weight that horovod_estimator.py comes to, in NumPy: averaged slopes of each rank's share, momentum 0.9."""
    x = np.linspace(-1, 1, 64)
    w = speed = 0.0
    for step in range(20 // ranks):
        slopes = []
        for rank in range(ranks):
            share = x[rank::ranks]
            batch = np.take(share, np.arange(16 * step, 16 * step + 16), mode="wrap")
            slopes.append(np.mean(2 * (w - 3) * batch**2))
        speed = 0.9 * speed + np.mean(slopes)
        w -= 0.05 * ranks * speed
    return float(w)


def check(name: str, one: Any, two: Any) -> None:
    """Return the output of the script on one rank and on two."""
    if name == "horovod_session":  # both ranks have all data; two take half the steps at twice the rate
        assert len(one[0]) == 10 and len(two[0]) == 5
        for mean, total in two[0]:
            assert total == pytest.approx(2 * mean, rel=1e-6)
        assert len(two[1]) == len(one[1]) + 1 and two[1][0] == two[1][1] == two[1][2]
    elif name == "horovod_estimator":
        assert (one["step"], two["step"]) == (20, 10)
        for ranks, found in ((1, one), (2, two)):
            assert np.ravel(found["w"])[0] == pytest.approx(momentum(ranks), rel=1e-4)
    else:
        np.testing.assert_allclose(
            *(np.asarray(list(v.values()) if isinstance(v, dict) else v, np.float64).ravel() for v in (two, one)),
            rtol=1e-5,
        )
