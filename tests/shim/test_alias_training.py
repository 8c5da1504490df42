"""Scripts of the vendor's packages and of Horovod train unchanged."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

pytestmark = pytest.mark.twice

SCRIPT = """
import horovod.tensorflow as hvd
import npu_device
import tensorflow as tf
from npu_bridge.estimator.npu.npu_config import NPURunConfig as RunConfig
from npu_bridge.estimator.npu.npu_loss_scale_optimizer import FixedLossScaleManager as FromTheOptimizer
from npu_bridge.npu_init import *
from npu_device.compat.v1.npu_init import NPUOptimizer as OptimizerOfTF2
import npu_bridge.npu_init, npu_shim.npu_init, npu_shim.npu_device, npu_shim.horovod.tensorflow

v1 = tf.compat.v1
hvd.init()
with v1.Graph().as_default():
    weight = v1.get_variable("weight", initializer=4.0)
    step = NPUDistributedOptimizer(v1.train.GradientDescentOptimizer(0.25)).minimize(weight * weight)
    with v1.Session(config=npu_config_proto()) as session:
        session.run(v1.global_variables_initializer())
        session.run(step)
        print("weight", session.run(weight), get_rank_size(), hvd.size())
print(
    npu_bridge.npu_init is npu_shim.npu_init,
    npu_device is npu_shim.npu_device,
    hvd is npu_shim.horovod.tensorflow,
    RunConfig is NPURunConfig,
    OptimizerOfTF2 is NPUOptimizer,
    FromTheOptimizer is FixedLossScaleManager,
)
"""


def test_a_script_of_the_vendors_packages_trains_unchanged(tmp_path: pathlib.Path, python: Any) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = python(tmp_path, "-m", "npu_shim", "run", "--alias", "train.py")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("weight", "True", "False"))]
    assert lines == ["weight 2.0 1 1", "True True True True True True"], done.stdout
