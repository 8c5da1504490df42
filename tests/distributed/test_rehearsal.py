"""Ranks of ``npu-shim launch`` with TensorFlow: forked ranks train as new processes do, and all servers on one host."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from npu_shim import cli
from npu_shim._host.packages import tensorflow_version
from samples import training
from tests.distributed.conftest import IS_NIGHTLY

IS_TF2 = (tensorflow_version() or "0") >= "2"
# Weights after some steps of averaged gradients: each rank knows them in closed form.
SCRIPT = """
import json, os, sys
import numpy as np
import tensorflow.compat.v1 as tf
from npu_shim.estimator.npu import npu_plugin
from npu_shim.npu_init import npu_distributed_optimizer_wrapper
from npu_shim.hccl.manage.api import get_local_rank_id, get_local_rank_size, get_rank_id, get_rank_size

tf.disable_v2_behavior()
rank, size = get_rank_id(), get_rank_size()
weight = tf.get_variable("weight", [3], tf.float64, tf.zeros_initializer())
loss = tf.reduce_sum((weight - rank) ** 2) / 2
train = npu_distributed_optimizer_wrapper(tf.train.GradientDescentOptimizer(0.5)).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        session.run(train)
    found = session.run(weight)
assert npu_plugin.malloc_shared_memory("rows", [size], tf.float32)[1] == 4 * size  # all servers share the host's
assert np.allclose(found, (size - 1) / 2 * (1 - 0.5**4), rtol=1e-12), found
print("place", json.dumps([rank, get_local_rank_id(), get_local_rank_size(), int(os.environ["DEVICE_ID"])]))
"""
RANDOM = """
import json, os, random
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
found = {"numpy": np.random.rand(), "random": random.random()}
with tf.Graph().as_default():
    number = v1.random_uniform([])
    rows = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1000).shuffle(1000).batch(4)).get_next()
    kernel = v1.get_variable("kernel", [3])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        found.update(graph=float(session.run(number)), data=str(session.run(rows)), kernel=float(session.run(kernel)[0]))
if tf.__version__ >= "2":
    found["eager"] = float(tf.random.normal([]))
    found["keras"] = float(tf.keras.layers.Dense(1)(tf.ones([1, 1]))[0, 0])
    found["generator"] = float(tf.random.Generator.from_non_deterministic_state().normal([]))
np.linalg.svd(np.random.rand(200, 200))  # starts the threads of OpenBLAS
print(json.dumps(found))
"""


def launch(folder: pathlib.Path, *arguments: str, timeout_s: float = 300.0) -> list[str]:
    """Run a job that succeeds and return the logs of its ranks, in the order of the ranks."""
    root = pathlib.Path(cli.__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "launch", "--log-dir", "logs", *arguments],
        cwd=str(folder),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'tools'}", "NPU_SHIM_COLLECTIVE_TIMEOUT": "200"},
    )
    assert done.returncode == 0, done.stderr
    if "--no-preload" not in arguments:
        assert "plain" not in done.stderr
    paths = (folder / "logs").glob("*.log")
    logs = [path.read_text() for path in sorted(paths, key=lambda path: int(re.findall(r"\d+", path.name)[-1]))]
    assert not any("starts again" in log for log in logs)
    return logs


@pytest.mark.once_tf115
def test_forked_ranks_have_random_numbers_of_their_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(RANDOM)
    ranks = [json.loads(log.splitlines()[-1]) for log in launch(tmp_path, "--ranks", "2", "train.py")]
    assert [name for name in ranks[0] if len({rank[name] for rank in ranks}) != 2] == []


@pytest.mark.nightly
def test_forked_ranks_compute_what_new_processes_compute(tmp_path: pathlib.Path) -> None:
    script = str(training.ROOT / "samples" / "digits_session" / "distributed_npu.py")
    losses = []
    for number, option in enumerate(["--no-preload", "--timeout=300"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        logs = launch(folder, "--ranks", "2", option, script, "--steps=20", "--dropout=0", "--log_every=5")
        losses.append([re.findall(r"loss \S+|accuracy \S+", log) for log in logs])
    assert losses[0] == losses[1] and len(losses[0][0]) > 3


@pytest.mark.parametrize("servers, devices", [(2, 2)] + IS_NIGHTLY * [(2, 8), (8, 8)])
@pytest.mark.once_tf115
def test_ranks_of_all_servers_train_on_one_host(servers: int, devices: int, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    hosts = ",".join(f"10.0.0.{server + 1}:{devices}" for server in range(servers))
    assert cli.main(["ranktable", "make", "--hosts", hosts, "-o", str(tmp_path / "t.json")]) == 0
    logs = launch(tmp_path, "--ranktable", "t.json", "--rehearse", "train.py", timeout_s=900)
    places = [json.loads(re.findall(r"^place (.*)$", log, re.MULTILINE)[0]) for log in logs]
    assert places == [[rank, rank % devices, devices, rank % devices] for rank in range(servers * devices)]


@pytest.mark.nightly
@pytest.mark.parametrize("sample", ["digits_session"] + IS_NIGHTLY * IS_TF2 * ["digits_fit", "digits_loop"])
def test_samples_train_on_two_servers(sample: str, tmp_path: pathlib.Path) -> None:
    script = str(training.ROOT / "samples" / sample / "distributed_npu.py")
    table = str(training.ROOT / "samples" / "ranktables" / "rank_table_2x8p.json")
    given = ["--steps=30", "--dropout=0", "--batch_size=4", "--log_every=10", "--model_dir=model"]
    logs = launch(tmp_path, "--ranktable", table, "--rehearse", script, *given, timeout_s=900)
    assert len(logs) == 16
    (accuracy,) = re.findall(r"^accuracy (\S+)$", logs[0], re.MULTILINE)
    assert float(accuracy) > 0.8
