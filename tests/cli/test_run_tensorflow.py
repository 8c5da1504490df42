"""``npu-shim run`` with TensorFlow: unmodified scripts train like their migrated form."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Callable

import pytest

from samples import compare, training
from tests.distributed import forks
from tests.marks import OF_VERSION_1, in_forks
from tests.samples.test_samples import NO_SUCH_THING, RUNNABLE, SAMPLES

STEPS = {"digits_estimator": 60, "digits_session": 60, "text_keras": 120, "digits_fit": 60, "digits_loop": 60}


Python = Callable[..., "subprocess.CompletedProcess[str]"]


def flags(name: str) -> list[str]:
    return [f"--steps={STEPS[name]}", "--log_every=10"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=OF_VERSION_1 * (name == "digits_session")
            + [pytest.mark.nightly] * (name not in ("digits_session", "digits_fit")),
        )
        for name in sorted({*RUNNABLE, *NO_SUCH_THING})
    ],
)
def test_an_original_trains_as_its_migrated_form_and_leaves_nothing_behind(
    name: str, repo_root: pathlib.Path, tmp_path: pathlib.Path, python: Python
) -> None:
    folder = repo_root / "samples" / name
    before = sorted(folder.rglob("*"))
    ours = python(tmp_path, "-m", "npu_shim", "run", str(folder / "original.py"), *flags(name))
    assert sorted(folder.rglob("*")) == before
    assert "npu-shim run: " in ours.stdout and "npu_shim: no NPU here; running on the CPU." in ours.stdout
    if name not in RUNNABLE:
        assert ours.returncode == 1
        assert ours.stdout.rstrip().splitlines()[-1].startswith("RuntimeError: " + NO_SUCH_THING[name][0])
        return
    assert ours.returncode == 0, ours.stdout[-3000:]
    migrated = forks.run_script(
        folder / "expected_npu.py",
        *flags(name),
        log=tmp_path / "migrated.log",
        environ=training.environment(),
        cwd=tmp_path,
    )
    a, b = training.parse(ours.stdout), training.parse(migrated)
    # One and the same program, its dropout too, whose sums only the threads of the CPU may order differently.
    assert compare.largest_difference(a, b) <= SAMPLES[name].loss_tolerance
    assert a.accuracy == pytest.approx(b.accuracy, abs=1e-3)


AUTOGRAPH = '''
import tensorflow as tf
if hasattr(tf.compat.v1, 'disable_eager_execution'):
    tf.compat.v1.disable_eager_execution()


def placed(x):
    """AutoGraph has to read this: an if on a tensor."""
    if tf.reduce_sum(x) > 100:
        x = x + 1
    with tf.device('/gpu:0'):
        y = tf.identity(x)
    print('placed on', y.device)
    return y


class Placing:
    def method(self, x):
        return placed(x)


def with_default(x, by=[1], *, and_by=2):
    def inner(z):
        with tf.device(
                '/gpu:0'):
            y = tf.identity(z) * by[0] * and_by
        print('placed on', tf.identity(y).device or y.op.inputs[0].op.inputs[0].device)
        return y
    return inner(x)


numbers = tf.data.Dataset.range(4).map(placed).map(
    lambda x: tf.identity(placed(x))).map(Placing().method).map(with_default)
with tf.compat.v1.Session() as session:
    following = tf.compat.v1.data.make_one_shot_iterator(numbers).get_next()
    print([int(session.run(following)) for _ in range(4)])
'''


@pytest.mark.smoke
@in_forks
def test_autograph_reads_the_migrated_source(tmp_path: pathlib.Path, python: Python) -> None:
    (tmp_path / "train.py").write_text(AUTOGRAPH)
    assert python(tmp_path, "train.py").stdout.count("placed on /device:GPU:0") == 4  # and there is none
    done = python(tmp_path, "-m", "npu_shim", "run", "train.py")
    assert (done.returncode, done.stdout.count("placed on /device:CPU:0")) == (0, 4), done.stdout
    assert "placed on /device:GPU:0" not in done.stdout and "AutoGraph could not" not in done.stdout
    assert done.stdout.rstrip().endswith("[0, 2, 4, 6]")


SHAPES = """
import numpy as np
import tensorflow.compat.v1 as tf

with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32, [None, 2], name='x')
    y = tf.reduce_sum(x)
    for size in (4, 4, 3):
        print(session.run(y, {x: np.ones([size, 2])}))
"""


@pytest.mark.once
@pytest.mark.parametrize("options, told", [([], True), (["--no-shape-watch"], False)])
def test_changing_shapes_are_reported_with_the_line_of_the_script(
    options: list[str], told: bool, tmp_path: pathlib.Path, python: Python
) -> None:
    (tmp_path / "train.py").write_text(SHAPES)
    done = python(tmp_path, "-m", "npu_shim", "run", *options, "train.py")
    assert [line for line in done.stdout.splitlines() if line in ("8.0", "6.0")] == ["8.0", "8.0", "6.0"], done.stdout
    assert ("train.py:6: the shape of the feed of x changed from [4, 2] to [3, 2]" in done.stdout) == told
    assert ("The NPU would compile 2 graphs for them" in done.stdout) == told


@pytest.mark.nightly
def test_child_processes_train_migrated_too(tmp_path: pathlib.Path, python: Python) -> None:
    (tmp_path / "train.py").write_text("""
import multiprocessing
import tensorflow.compat.v1 as tf

def work(_):
    with tf.Graph().as_default(), tf.Session() as session:
        entries = session._config.graph_options.rewrite_options.custom_optimizers
        return [entry.name for entry in entries], float(session.run(tf.constant(3.0) * 2.0))

if __name__ == '__main__':
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        print(pool.map(work, [1]))
""")
    done = python(tmp_path, "-m", "npu_shim", "run", "train.py")
    assert "[(['NpuOptimizer'], 6.0)]" in done.stdout, done.stdout
