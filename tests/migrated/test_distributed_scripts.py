"""Scripts for many devices, migrated with -d: on one process they compute what they did before.

The scripts in distributed/ are run as they are, those with Horovod against the answers that Horovod gives on one
process, and then migrated, without Horovod.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.main import main

from tests.distributed import forks

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRIPTS = {
    "mirrored_estimator": "tf_strategy",
    "mirrored_train_and_evaluate": "tf_strategy",
    "keras_in_scope": "tf_strategy",
    "mirrored_project_style": "tf_strategy",
    "gradients_by_hand": "tf_strategy",
    "horovod_estimator": "horovod",
    "horovod_session": "horovod",
    "horovod_keras": "horovod",
}
# TensorFlow 2.15 is the last one with Estimators, and with Keras in sessions.
OLDER = frozenset(
    name for name in SCRIPTS if any(word in name for word in ("estimator", "evaluate", "keras", "project"))
)
HERE_RUN = [name for name in SCRIPTS if name not in OLDER or tuple(map(int, tf.__version__.split(".")[:2])) <= (2, 15)]
# What each of them has to hold once it is migrated, and what not any more.
WRITTEN: dict[str, list[str]] = {
    "mirrored_estimator": [
        "NPURunConfig(",
        "npu_hooks_append(hooks_list=[",
        "npu_distributed_optimizer_wrapper(tf.train.M",
        "strategy = npu_strategy.NPUStrategy()",
        "train_distribute=strategy",
    ],
    "mirrored_train_and_evaluate": ["hooks=npu_hooks_append()", "npu_strategy.NPUStrategy()", "NPUEstimator("],
    "mirrored_project_style": [
        "train_distribute=strategy",
        "optimizer = npu_distributed_optimizer_wrapper(AdamWithDecay(",
    ],
    "keras_in_scope": [
        "compile(npu_distributed_optimizer_wrapper('sgd'), 'mse')",
        "strategy = npu_strategy.NPUStrategy()",
        "callbacks=npu_callbacks_append()",
    ],
    "gradients_by_hand": ["gradients = npu_allreduce(tf.gradients(loss +", "slope = tf.gradients("],
    "horovod_estimator": ["import npu_shim.horovod.tensorflow as hvd", "hvd.DistributedOptimizer(", "NPUEstimator("],
    "horovod_session": ["import npu_shim.horovod.tensorflow as hvd", "npu_config_proto("],
    "horovod_keras": ["npu_shim.horovod.", "hvd."],
}
TAKEN_OUT = ("import horovod", "MirroredStrategy", "OneDeviceStrategy")


def result(script: pathlib.Path, log: pathlib.Path, *arguments: str, path: str = "") -> np.ndarray:
    """Return the numbers that a script prints.

    Args:
        script: the script, or a program that runs it.
        log: the file for the output; the script gets the path without its ending as a folder.
        arguments: of the program, before that folder.
        path: a further folder of modules.
    """
    # oneDNN rounds otherwise where TensorFlow fuses operators, which the migrated script leaves to the card.
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), str(ROOT / "tools"), path))),
        "NPU_SHIM_FALLBACK": "silent",
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }
    for name in ("RANK_ID", "RANK_SIZE", "TF_CONFIG"):
        environment.pop(name, None)
    said = forks.run_script(script, *arguments, str(log.with_suffix("")), log=log, environ=environment, cwd=log.parent)
    return numbers(json.loads([line for line in said.splitlines() if line[:1] in "[{"][-1]))


def numbers(found: Any) -> np.ndarray:
    """All numbers in a structure, in the order of its keys."""
    if isinstance(found, dict):
        found = [found[key] for key in sorted(found)]
    return np.concatenate([numbers(f) for f in found]) if isinstance(found, list) else np.array([found], np.float64)


@pytest.mark.parametrize("name", HERE_RUN)
def test_a_migrated_script_computes_what_it_did_before(name: str, tmp_path: pathlib.Path) -> None:
    script = HERE / "distributed" / (name + ".py")
    migrated = tmp_path / (name + ".py")
    assert main(["-i", str(script), "-o", str(migrated), "-d", SCRIPTS[name]]) == 0
    text = migrated.read_text()
    assert [part for part in WRITTEN[name] if part not in text] == []
    assert [word for word in TAKEN_OUT if word in text.split('"""', 2)[2]] == []
    before = result(script, tmp_path / "before.log", path=str(HERE / "one_process"))
    after = result(migrated, tmp_path / "after.log")
    run = tmp_path / "run.py"
    run.write_text("import sys\nfrom npu_shim.cli import main\nsys.exit(main())\n")
    in_memory = result(run, tmp_path / "in_memory.log", "run", "-d", SCRIPTS[name], str(script))
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(in_memory, after, rtol=1e-6, atol=1e-7)
    assert np.isfinite(before).all() and len(set(before.tolist())) > 1
