"""The samples train, and train the same before and after migration."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

from samples import compare, training
from tests.marks import OF_VERSION_1
from tests.samples.conftest import Train

IS_TF2 = tf.__version__ >= "2"
SAMPLES = {sample.name: sample for sample in compare.SAMPLES}
ONLY_IN_TF2 = ("digits_fit", "digits_loop")
MARKS = {name: [] if name in ONLY_IN_TF2 else OF_VERSION_1 for name in SAMPLES}

# TensorFlow lost Estimator after 2.15, and graph mode for Keras with Keras 3.
HAS_ESTIMATOR = hasattr(tf, "estimator")
HAS_GRAPH_KERAS = int(getattr(tf.keras, "__version__", "2").split(".")[0]) < 3
RUNNABLE = [
    name
    for name, there in (
        ("digits_estimator", HAS_ESTIMATOR),
        ("digits_session", True),
        ("text_keras", HAS_GRAPH_KERAS),
        ("digits_fit", IS_TF2),
        ("digits_loop", IS_TF2),
    )
    if there
]

# How the migrated sample ends where TensorFlow lacks what it needs.
NO_SUCH_THING = {
    "digits_estimator": (
        "NPURunConfig needs tf.estimator, which TensorFlow ",
        "the last TensorFlow that has it is 2.15.",
    ),
    "text_keras": (
        "set_keras_session_npu_config needs Keras sessions, which the Keras 3 of ",
        "the last version with them, or train with tf.compat.v1.Session.",
    ),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_expected_npu_is_what_the_tool_writes_today(name: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written, _ = compare.migrate(name, tmp_path / "out")
    expected = repo_root / "samples" / name / "expected_npu.py"
    assert written.read_bytes().decode() == expected.read_bytes().decode(), (
        f"when the change is wanted: python {compare.TOOL.relative_to(repo_root)} -i samples/{name}/original.py -o OUT && "
        f"cp OUT/original.py samples/{name}/expected_npu.py"
    )


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS[name]) for name in RUNNABLE])
def test_without_dropout_both_log_the_same_loss_at_every_step(name: str, train: Train) -> None:
    original = train("original", name, "--dropout=0")
    migrated = train("expected_npu", name, "--dropout=0")
    difference = compare.largest_difference(original.result(), migrated.result())
    assert difference <= SAMPLES[name].loss_tolerance


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS[name]) for name in sorted(SAMPLES) if IS_TF2 or name not in ONLY_IN_TF2]
)
def test_the_migrated_sample_trains_or_says_what_this_tensorflow_lacks(name: str, train: Train) -> None:
    future = train("expected_npu", name, "--dropout=0")
    if name in RUNNABLE:
        losses = future.result().losses
        assert len(losses) >= 10 and min(losses) == 1
        assert losses[max(losses)] < 0.5 * losses[1]
        return
    with pytest.raises(training.SampleError) as error:
        future.result()
    last_line = str(error.value).rstrip().splitlines()[-1].strip()
    assert last_line.startswith("RuntimeError: ")
    for text in NO_SUCH_THING[name] + (tf.__version__, "Install tensorflow==2.15.*"):
        assert text in last_line


@pytest.mark.parametrize(
    "name", ["digits_fit", pytest.param("digits_session", marks=pytest.mark.nightly)] if IS_TF2 else ["digits_session"]
)
def test_train_1p_trains_here_and_keeps_a_log(name: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [
            "bash",
            str(repo_root / "samples" / name / "train_1p.sh"),
            "--steps=20",
            "--log_every=5",
            f"--model_dir={tmp_path / 'model'}",
        ],
        env={**training.environment(), "PYTHON": sys.executable, "LOG_DIR": str(tmp_path / "logs")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / "logs" / "train_0.log").read_text(encoding="utf-8")
    assert training.parse(log).losses.keys() >= {1}
    assert list((tmp_path / "model").iterdir())
