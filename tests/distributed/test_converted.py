"""Scripts of TensorFlow 2, converted by the tool with no change by hand: ranks train as one process."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any, Sequence

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.main import main

from tests.distributed.conftest import IS_NIGHTLY
from tests.distributed.test_training import SCRIPTS, forked

# The cases of each script that always run, and the others. Each case trains one model.
PLAIN = [
    "fit_sgd_clip_norm_callbacks",
    "fit_adam_scale_dataset",
    "loop_adam_clip_norm_scale",
    "nan_sgd",
    "own_adam",
]
if not tf.__version__.startswith("2.15."):
    PLAIN = PLAIN[:2] + IS_NIGHTLY * PLAIN[2:]  # TensorFlow 2.15 runs the others by day
MORE_PLAIN = [
    "fit_sgd_shuffled",
    "unbuilt_sgd",
    "backup_adam",
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
# Readers of gradients before an optimizer applies them, in all orders at night, in three of them by day.
READERS = ["fit_clip", "loop_log_clip_unscale_add", "eager_add_unscale_clip_log", "loop_clip_log_add_unscale"]
MORE_READERS = ["loop_" + "_".join(order) for order in itertools.permutations(("log", "clip", "unscale", "add"))]
HOROVOD = ["sgd_norm", "adam_clip_scale"]
MORE_HOROVOD = ["sgd", "adam", "sgd_clip", "sgd_scale", "adam_norm", "adam_clip_norm_scale"]


def converted(script: pathlib.Path, mode: str, folder: pathlib.Path) -> pathlib.Path:
    """Return the converted script."""
    out = folder / "out"
    assert main(["-i", str(script), "-o", str(out), "-d", mode, "--no-cache"]) == 0
    text = (out / script.name).read_text()
    assert "npu.open().as_default()" in text and ("npu_shim.horovod" in text) == (mode == "horovod")
    assert ("NPUStrategy()" in text) == ("Strategy" in script.read_text())
    return out / script.name


def arrays(folder: pathlib.Path, case: str, rank: str) -> list[Any]:
    with np.load(folder / f"{case}_{rank}.npz") as found:
        return [found[name] for name in found.files]


def written(folder: pathlib.Path) -> list[str]:
    """Return what a script has written, but the weights of the ranks, logs and profiles; event files without time."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".npz"]
    files = [path for path in files if not path.parts[0].startswith("logs") and "plugins" not in path.parts]
    return sorted(str(path).split(".tfevents")[0] for path in files)


def largest_difference(one: list[Any], other: list[Any]) -> float:
    assert len(one) == len(other) and [a.shape for a in one] == [a.shape for a in other]
    return float(np.max([np.abs(a - b).max() for a, b in zip(one, other)]))


def compare(
    original: pathlib.Path,
    mode: str,
    cases: list[str],
    sizes: Sequence[int],
    folder: pathlib.Path,
    advice: Sequence[tuple[str, str]] = (),
) -> None:
    """Compare the weights and files of a script's cases on one process with those of ranks of the converted script.

    Args:
        advice: the changes by hand that the tool advises: before and after.
    """
    out = converted(original, mode, folder)
    for before, after in advice:
        text = out.read_text()
        assert text.count(before) == 1
        out.write_text(text.replace(before, after))
    one = folder / "one"
    one.mkdir()
    forked(1, str(out if mode == "horovod" else original), str(one), *cases, folder=one)
    for size in sizes:
        made = folder / f"{size}_ranks"
        made.mkdir()
        forked(size, str(out), str(made), *cases, folder=made)
        found = {
            case: [largest_difference(arrays(one, case, "0"), arrays(made, case, str(rank))) for rank in range(size)]
            for case in cases
        }
        print(f"{original.name} on {size} ranks:", found)
        assert all(each <= 1e-5 for differences in found.values() for each in differences), found
        assert written(made) == written(one)


if tf.__version__ >= "2":

    @pytest.mark.parametrize(
        "script, mode, cases",
        [
            ("plain_training.py", "tf_strategy", PLAIN + IS_NIGHTLY * MORE_PLAIN),
            pytest.param(
                "strategy_training.py", "tf_strategy", STRATEGY + IS_NIGHTLY * MORE_STRATEGY, marks=pytest.mark.nightly
            ),
            ("gradient_readers.py", "tf_strategy", READERS + IS_NIGHTLY * MORE_READERS),
            ("horovod_fit.py", "horovod", HOROVOD + IS_NIGHTLY * MORE_HOROVOD),
        ],
    )
    def test_training_of_tensorflow_2(script: str, mode: str, cases: list[str], tmp_path: pathlib.Path) -> None:
        compare(SCRIPTS / script, mode, cases, (2, 4) if IS_NIGHTLY else (2,), tmp_path)

    @pytest.mark.nightly
    def test_gradients_of_a_tape_of_horovod(tmp_path: pathlib.Path) -> None:
        text = (SCRIPTS / "gradient_readers.py").read_text()
        for before, after in (
            ("import tensorflow as tf\n", "import horovod.tensorflow as hvd\nimport tensorflow as tf\n\nhvd.init()\n"),
            ("        gradients = tape.grad", "        gradients = hvd.DistributedGradientTape(tape).grad"),
            ("seed=3).batch(16)", "seed=3).shard(hvd.size(), hvd.rank()).batch(16 // hvd.size())"),
        ):
            assert text.count(before) == 1
            text = text.replace(before, after)
        original = tmp_path / "gradient_readers.py"
        original.write_text(text)
        compare(original, "horovod", [case for case in READERS + MORE_READERS if case != "fit_clip"], (2,), tmp_path)

    def test_noise_of_the_global_batch(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
        script = SCRIPTS / "noise_training.py"
        assert main(["-i", str(script), "-d", "tf_strategy", "--no-cache", "-v"]) == 0
        printed = "".join(capsys.readouterr()).replace("\n", " ")
        made = ["tf.random.normal([BATCH_SIZE, 3], seed=5)", "tf.random.uniform([BATCH_SIZE, 1], seed=6)"]
        advice = [(each, f"npu.distribute.shard_batch({each})") for each in made]
        assert all(f"Write {after}" in printed for _, after in advice)
        compare(script, "tf_strategy", ["wgan"], (2, 4) if IS_NIGHTLY else (2,), tmp_path, advice)


if tf.__version__ >= "2" and IS_NIGHTLY:

    @pytest.mark.parametrize("strategy", ["OneDeviceStrategy('/cpu:0')", "MultiWorkerMirroredStrategy()"])
    def test_other_strategies(strategy: str, tmp_path: pathlib.Path) -> None:
        original = tmp_path / "training.py"
        text = (SCRIPTS / "strategy_training.py").read_text()
        original.write_text(text.replace("MirroredStrategy()", strategy))
        compare(original, "tf_strategy", STRATEGY + ["fit_sgd", "loop_adam"], (1, 2), tmp_path)

    def test_folders_of_workers(tmp_path: pathlib.Path) -> None:
        compare(SCRIPTS / "multi_worker_training.py", "tf_strategy", ["loop"], (1, 2, 4), tmp_path)
