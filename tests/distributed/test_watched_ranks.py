"""Ranks that are watched: the slowest one, the event files, and the line of the script that a stalled rank is at."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

SCRIPT = """
import time
import npu_shim
import tensorflow.compat.v1 as tf
from npu_shim.hccl import hccl_ops
from npu_shim.hccl.manage.api import get_rank_id
from npu_shim.npu_init import npu_distributed_optimizer_wrapper

tf.disable_v2_behavior()
SLOW = 0.03 * get_rank_id()


def load(step):
    time.sleep(SLOW)
    if step == 60 and get_rank_id():
        time.sleep(600)  # the line


w = tf.get_variable("w", [4, 1])
loss = tf.reduce_mean((w - 1) ** 2)
train = npu_distributed_optimizer_wrapper(tf.train.GradientDescentOptimizer(0.1)).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(61):
        load(step)
        session.run(train)
"""


@pytest.mark.once_tf115
def test_slowest_rank_and_the_line_of_a_stalled_one_are_named(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "npu_shim",
            "launch",
            "--ranks",
            "2",
            "--progress",
            "--tensorboard",
            "events",
            "train.py",
        ],
        cwd=str(tmp_path),
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": f"{repo_root}:{repo_root}/tools",
            "NPU_SHIM_FALLBACK": "silent",
            "NPU_SHIM_COLLECTIVE_TIMEOUT": "3",
        },
        timeout=300,
    )
    line = 1 + SCRIPT.splitlines().index("        time.sleep(600)  # the line")
    assert done.returncode == 1
    path = rf"({tmp_path}/)?train\.py"  # Python before 3.9 names a script as it is started
    assert re.search(
        rf"Not reached by:\s+.*rank 1 \(process \d+\), at {path}:{line} in load, in no collective",
        done.stderr + done.stdout,
    )
    assert re.search(r"npu-shim launch: rank 0  step 60  [\d.]+ steps/s +loss [\d.e-]+ +\d+ MB", done.stderr)
    found = re.search(r"npu-shim launch: rank 1  step 60  .*", done.stderr)
    assert found, done.stderr
    assert sorted(path.name for path in (tmp_path / "events").iterdir()) == ["rank_0", "rank_1"]
