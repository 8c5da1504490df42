"""The digits CNN trained through train_and_evaluate ends the same with one step per run and with 100."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from samples import training
from tests.distributed import forks
from tests.marks import OF_VERSION_1

pytestmark = OF_VERSION_1
HAS_ESTIMATOR = hasattr(tf, "estimator")
STEPS = 200

TRAIN = """
import sys
import numpy as np
import expected_npu as sample
from npu_shim.npu_init import *
tf = sample.tf
sample.FLAGS(['digits', '--dropout=0'])
folder, iterations, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
config = NPURunConfig(model_dir=folder, tf_random_seed=1, iterations_per_loop=iterations, save_checkpoints_steps=100)
job = NPUEstimator(sample.model_fn, config=config)
result, _ = tf.estimator.train_and_evaluate(
    job, tf.estimator.TrainSpec(sample.train_input_fn, max_steps=steps),
    tf.estimator.EvalSpec(sample.eval_input_fn, steps=None, start_delay_secs=0, throttle_secs=0))
names = [n for n in job.get_variable_names()]
np.savez(folder + '/end.npz', accuracy=result['accuracy'], loss=result['loss'],
         **{n.replace('/', '.'): job.get_variable_value(n) for n in names})
"""


def train(repo_root: pathlib.Path, folder: pathlib.Path, iterations: int) -> None:
    script = folder.parent / f"train_{iterations}.py"
    script.write_text(TRAIN)
    environment = training.environment()
    environment["PYTHONPATH"] += os.pathsep + str(repo_root / "samples" / "digits_estimator")
    log = folder.parent / f"{iterations}.log"
    forks.run_script(script, str(folder), str(iterations), str(STEPS), log=log, environ=environment)


def test_the_same_weights_with_1_and_100_steps_per_run(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if not HAS_ESTIMATOR:
        with pytest.raises(AssertionError, match="NPURunConfig needs tf.estimator"):
            train(repo_root, tmp_path / "1", 1)
        return
    ends = []
    for iterations in (1, 100):
        train(repo_root, tmp_path / str(iterations), iterations)
        ends.append(np.load(str(tmp_path / str(iterations) / "end.npz")))
    one, hundred = ends
    assert sorted(one) == sorted(hundred) and one["global_step"] == hundred["global_step"] == STEPS
    for name in one:
        np.testing.assert_allclose(hundred[name], one[name], rtol=1e-4, atol=2e-5, err_msg=name)
    assert hundred["accuracy"] == pytest.approx(float(one["accuracy"]), abs=0.003) and one["accuracy"] > 0.9
