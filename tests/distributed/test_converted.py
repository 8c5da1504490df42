"""Scripts of TensorFlow 2, converted by the tool with no change by hand: ranks train as one process."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.main import main

from tests.distributed.test_training import SCRIPTS, forked

# The cases of each script that always run, and the others. Each case trains one model.
PLAIN = ["fit_sgd_clip_norm_callbacks", "fit_adam_scale_dataset", "loop_adam_clip_norm_scale"]
MORE_PLAIN = [
    "fit_adam_norm_scale",
    "fit_sgd",
    "fit_adam",
    "fit_sgd_dataset_norm",
    "loop_sgd",
    "loop_adam",
    "loop_sgd_norm",
]
STRATEGY = ["fit_adam_clip_sync_scale", "loop_sgd_clip_sync"]
MORE_STRATEGY = ["fit_sgd", "fit_adam", "fit_sgd_scale", "loop_adam", "loop_sgd_sync", "fit_sgd_clip", "fit_adam_sync"]
IS_NIGHTLY = os.environ.get("NPU_SHIM_RANK_CASES") == "all"
SIZES = (2, 4) if IS_NIGHTLY else (2,)


def converted(script: str, mode: str, folder: pathlib.Path) -> pathlib.Path:
    """Return the converted script."""
    out = folder / "out"
    assert main(["-i", str(SCRIPTS / script), "-o", str(out), "-d", mode, "--no-cache"]) == 0
    assert "npu.open().as_default()" in (out / script).read_text()
    return out / script


def arrays(folder: pathlib.Path, case: str, rank: str) -> list[Any]:
    with np.load(folder / f"{case}_{rank}.npz") as found:
        return [found[name] for name in found.files]


def written(folder: pathlib.Path) -> set[str]:
    """Return what a script has written, but the weights of the ranks and its logs."""
    return {path.name for path in folder.iterdir() if path.suffix != ".npz" and not path.name.startswith("logs")}


def largest_difference(one: list[Any], other: list[Any]) -> float:
    assert len(one) == len(other) and [a.shape for a in one] == [a.shape for a in other]
    return float(np.max([np.abs(a - b).max() for a, b in zip(one, other)]))


if tf.__version__ >= "2":

    @pytest.mark.smoke
    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_keras_fit_with_horovod(optimizer: str, tmp_path: pathlib.Path) -> None:
        script = converted("horovod_fit.py", "horovod", tmp_path)
        assert "import npu_shim.horovod.tensorflow.keras as hvd" in script.read_text()
        for ranks in (1, *SIZES):
            forked(ranks, str(script), str(tmp_path / f"{ranks}.npz"), optimizer, folder=tmp_path)
        with np.load(tmp_path / "1.npz") as one:
            for size in SIZES:
                with np.load(tmp_path / f"{size}.npz") as two:
                    assert len(one.files) == 4
                    assert max(np.abs(two[name] - one[name]).max() for name in one.files) <= 1e-5

    @pytest.mark.smoke
    @pytest.mark.parametrize(
        "script, cases",
        [
            ("plain_training.py", PLAIN + IS_NIGHTLY * MORE_PLAIN),
            ("strategy_training.py", STRATEGY + IS_NIGHTLY * MORE_STRATEGY),
        ],
    )
    def test_training_of_tensorflow_2(script: str, cases: list[str], tmp_path: pathlib.Path) -> None:
        one = tmp_path / "one"
        one.mkdir()
        forked(1, str(SCRIPTS / script), str(one), *cases, folder=one)
        out = converted(script, "tf_strategy", tmp_path)
        for size in SIZES:
            folder = tmp_path / f"{size}_ranks"
            folder.mkdir()
            forked(size, str(out), str(folder), *cases, folder=folder)
            found = {
                case: [
                    largest_difference(arrays(one, case, "0"), arrays(folder, case, str(rank))) for rank in range(size)
                ]
                for case in cases
            }
            print(f"{script} on {size} ranks:", found)
            assert all(each <= 1e-5 for differences in found.values() for each in differences), found
            assert written(folder) == written(one)
