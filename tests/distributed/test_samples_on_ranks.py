"""The samples on several ranks, in forks and through the launch script: each trains as one process on the whole batch."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

import h5py
import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.main import main

from samples import training
from tests.distributed.test_training import environment, forked
from tests.marks import OF_VERSION_1

HAS_ESTIMATOR = hasattr(tf.compat.v1, "estimator")
HAS_GRAPH_KERAS = int(getattr(tf.keras, "__version__", "2").split(".")[0]) < 3
IS_TF2 = tf.__version__ >= "2"
ONLY_IN_TF2 = ("digits_fit", "digits_loop")
HOROVOD = ("digits_gan", "digits_horovod")  # once Horovod scripts, which train on ranks as the tool leaves them
THROUGH_THE_SCRIPT = ("digits_horovod", "digits_loop")  # train_8p.sh; the others, as forks


class Sample(NamedTuple):
    """A short training of a sample: its flags besides the number of steps and rows, and what it prints last."""

    flags: tuple[str, ...]
    rows: int
    last: str
    runs: bool = True


SAMPLES = {
    "digits_session": Sample(("--dropout=0", "--log_every=10"), 64, "accuracy"),
    "digits_estimator": Sample(("--dropout=0", "--log_every=10"), 64, "accuracy", HAS_ESTIMATOR),
    "text_keras": Sample(("--dropout=0", "--log_every=10"), 64, "accuracy", HAS_GRAPH_KERAS),
    "digits_fit": Sample(("--dropout=0", "--log_every=10"), 64, "accuracy"),
    "digits_loop": Sample(("--dropout=0", "--log_every=10"), 64, "accuracy"),
    "digits_gan": Sample(("--log_every=10",), 64, "distance"),
    # The global norm of the averaged gradients is 0.36 to 0.68 in these steps: clipping scales all of them.
    "digits_horovod": Sample(("--clip=0.25", "--log_every=10", "--optimizer=sgd"), 64, "accuracy"),
}


def folder_of(name: str) -> pathlib.Path:
    return training.ROOT / "samples" / name


def on_one(name: str, model: pathlib.Path, *flags: str) -> str:
    """Return the output of the migrated script as one process."""
    script = str(folder_of(name) / "expected_npu.py")
    return forked(1, script, f"--model_dir={model}", *flags, folder=model.with_name(model.name + "_logs"))


def program(name: str) -> str:
    """Return the script of a sample that trains on several devices."""
    return "expected_npu.py" if name in HOROVOD else "distributed_npu.py"


def train_8p(name: str, ranks: int, logs: pathlib.Path, *flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The launch script for eight devices, on so many."""
    given = {
        **environment(),
        "RANK_SIZE": str(ranks),
        "JOB_ID": f"train_8p-{os.getpid()}",
        "LOG_DIR": str(logs),
        "PYTHON": sys.executable,
        **env,
    }
    return subprocess.run(
        ["bash", str(folder_of(name) / "train_8p.sh"), *flags],
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def weights(model: pathlib.Path) -> dict[str, np.ndarray]:
    """All variables of a checkpoint, or of the weights that Keras has saved."""
    for path in model.glob("*weights.h5"):
        found: dict[str, np.ndarray] = {}
        with h5py.File(str(path), "r") as stream:
            stream.visititems(
                lambda path, item: found.__setitem__(path, np.array(item)) if isinstance(item, h5py.Dataset) else None
            )
        return found
    read = tf.train.load_checkpoint(str(model))
    return {key: read.get_tensor(key) for key in read.get_variable_to_shape_map()}


def same(several: pathlib.Path, one: pathlib.Path) -> None:
    """Assert that two trainings have the same variables."""
    ours, theirs = weights(several), weights(one)
    assert ours.keys() == theirs.keys() and len(ours) >= 7
    for key, value in theirs.items():
        # 1e-8 apart after five steps; from then on a ReLU now and then goes the other way, which moves weights by 1e-4.
        np.testing.assert_allclose(ours[key], value, rtol=0.01, atol=2e-3, err_msg=key)


@pytest.mark.parametrize("name", HOROVOD)
def test_the_sample_is_what_the_tool_makes(name: str, tmp_path: pathlib.Path) -> None:
    assert main(["-i", str(folder_of(name) / "original.py"), "-o", str(tmp_path / "out"), "-d", "horovod"]) == 0
    assert (tmp_path / "out" / "original.py").read_text() == (folder_of(name) / "expected_npu.py").read_text()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.nightly]
            * (name in ("digits_estimator", "digits_fit", "digits_gan", "digits_loop", "text_keras"))
            + OF_VERSION_1 * (name == "digits_session")
            + [pytest.mark.once_tf115] * (name == "digits_horovod"),
        )
        for name in sorted(SAMPLES)
        if IS_TF2 or name not in ONLY_IN_TF2
    ],
)
def test_two_ranks_train_the_sample_as_one_process_on_the_whole_batch(name: str, tmp_path: pathlib.Path) -> None:
    sample, steps = SAMPLES[name], "--steps=30"
    if not sample.runs:
        done = train_8p(name, 2, tmp_path, steps)
        assert done.returncode == 1
        said = (tmp_path / "0" / "train_0.log").read_text()
        assert re.search(r"RuntimeError: .* needs (tf\.estimator|Keras sessions), which", said)
        return
    rate: tuple[list[str], list[str]] = ([], [])
    if name == "digits_horovod":  # which multiplies it by the number of ranks
        rate = ["--learning_rate=0.1"], ["--learning_rate=0.05"]
    alone = on_one(name, tmp_path / "one", steps, *sample.flags, *rate[0], f"--batch_size={sample.rows}")
    flags = [steps, *sample.flags, *rate[1], f"--batch_size={sample.rows // 2}", f"--model_dir={tmp_path / 'two'}"]
    if name in THROUGH_THE_SCRIPT:
        done = train_8p(name, 2, tmp_path / "logs", *flags)
        assert done.returncode == 0, done.stdout[-3000:]
        assert sorted(path.name for path in (tmp_path / "logs").rglob("*.log")) == ["train_0.log", "train_1.log"]
        said, log = done.stdout, (tmp_path / "logs" / "0" / "train_0.log").read_text()
    else:
        said = log = forked(2, str(folder_of(name) / program(name)), *flags, folder=tmp_path / "logs")
    same(tmp_path / "two", tmp_path / "one")
    result, expected = (float(re.findall(rf"^{sample.last} (\S+)", text, re.M)[-1]) for text in (said, alone))
    assert result == pytest.approx(expected, abs=0.01)
    if name not in ("text_keras", "digits_fit"):  # of which each rank logs the loss of its own rows
        losses, wanted = (dict(training.LOSS_LINE.findall(text)) for text in (log, alone))
        assert losses.keys() == wanted.keys() and len(losses) >= 3
        np.testing.assert_allclose([float(v) for v in losses.values()], [float(v) for v in wanted.values()], rtol=2e-3)


@pytest.mark.nightly
def test_eight_ranks_train_as_one_process_on_the_whole_batch(tmp_path: pathlib.Path) -> None:
    flags = ("--steps=20", "--log_every=5")
    alone = on_one("digits_horovod", tmp_path / "one", *flags, "--learning_rate=0.004", "--batch_size=64")
    eight = forked(
        8,
        str(folder_of("digits_horovod") / program("digits_horovod")),
        *flags,
        "--learning_rate=0.0005",
        "--batch_size=8",
        f"--model_dir={tmp_path / 'eight'}",
        folder=tmp_path / "logs",
    )
    same(tmp_path / "eight", tmp_path / "one")
    found, wanted = training.parse(eight), training.parse(alone)
    np.testing.assert_allclose(list(found.losses.values()), list(wanted.losses.values()), rtol=2e-3)
    assert found.accuracy == pytest.approx(wanted.accuracy, abs=0.02) and found.losses[20] < 0.8 * found.losses[5]


@pytest.mark.nightly
def test_the_gan_learns_to_draw_digits(tmp_path: pathlib.Path) -> None:
    distances = [
        float(on_one("digits_gan", tmp_path / str(steps), f"--steps={steps}").split("distance ")[1].split()[0])
        for steps in (1, 200)
    ]
    assert distances[1] < 0.6 * distances[0]


@pytest.mark.nightly
def test_the_launch_script_ends_with_the_code_of_a_rank_that_fails(tmp_path: pathlib.Path) -> None:
    done = train_8p("digits_horovod", 2, tmp_path, "--nonsense=1")
    assert (
        done.returncode == 1 and "Unknown command line flag 'nonsense'" in (tmp_path / "0" / "train_0.log").read_text()
    )
    missing = train_8p("digits_horovod", 2, tmp_path, RANK_TABLE_FILE="nowhere.json")
    assert (
        missing.returncode == 2 and "no rank table nowhere.json; npu-shim ranktable make writes one" in missing.stdout
    )


def test_a_sample_starts_what_trains_on_several_devices(tmp_path: pathlib.Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$*"\n')
    python.chmod(0o755)
    for name in SAMPLES:
        done = train_8p(name, 1, tmp_path, "--a b", PYTHON=str(python))
        assert done.stdout.splitlines()[-1] == f"{folder_of(name) / program(name)} --a b"
