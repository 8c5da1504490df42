"""Runs of a command see the same files, leave none, and name the checkpoint from which they start."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Callable

import pytest
import tensorflow as tf

from samples import training
from tests.verify_command import VerifyCommand

Python = Callable[..., "subprocess.CompletedProcess[str]"]

MONITORED = """
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [8, 4])
w = v1.get_variable("w", initializer=np.ones([4, 1], "f4"))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
step = v1.train.get_or_create_global_step()
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
v1.summary.scalar("loss", loss)
hooks = [v1.train.StopAtStepHook(num_steps=4)]
with v1.train.MonitoredTrainingSession(
    checkpoint_dir="model", hooks=hooks, save_checkpoint_steps=2, save_summaries_steps=1
) as session:
    while not session.should_stop():
        session.run(train, {x: np.ones([8, 4], "f4")})
with open("log.txt", "a") as log:
    log.write("done")
"""
SAVER = """
import os
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [8, 4])
w = v1.get_variable("w", initializer=np.ones([4, 1], "f4"))
train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w))))
saver = v1.train.Saver(max_to_keep=1)
os.makedirs("model", exist_ok=True)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    last = tf.train.latest_checkpoint("model")
    if last:
        saver.restore(session, last)
    first = int(last.rpartition("-")[2]) if last else 0
    for step in range(first, first + 4):
        session.run(train, {x: np.ones([8, 4], "f4")})
        saver.save(session, "model/net", step + 1)
"""
MANAGER = """
import numpy as np
import tensorflow as tf

w = tf.Variable(np.ones([4, 1], "f4"))
optimizer = tf.keras.optimizers.SGD(0.1)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(w=w), "model", max_to_keep=2)
if manager.latest_checkpoint:
    manager.checkpoint.restore(manager.latest_checkpoint)
writer = tf.summary.create_file_writer("logs")
for step in range(4):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(np.ones([8, 4], "f4"), w)))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    manager.save()
np.save("w.npy", w.numpy())
"""
KERAS = """
import os
import shutil
import numpy as np
import tensorflow as tf

x = np.random.RandomState(0).rand(32, 4).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,), kernel_initializer="ones")])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
if os.path.exists("model/net.weights.h5"):
    model.load_weights("model/net.weights.h5")
keeps = tf.keras.callbacks.ModelCheckpoint("model/net.weights.h5", save_weights_only=True)
backup = getattr(tf.keras.callbacks, "BackupAndRestore", None)  # since TensorFlow 2.8
model.fit(x, x.sum(1), 8, 2, 0, [keeps, *([backup("backup")] if backup else [])], shuffle=False)
os.rename("model", "before")
os.mkdir("model")
shutil.rmtree("before")
model.save_weights("model/net.weights.h5")
"""
SCRIPTS = {"saver": SAVER, "monitored session": MONITORED}
if tf.__version__ >= "2":
    SCRIPTS.update({"checkpoint manager": MANAGER, "keras": KERAS})


BY_DAY = "saver" if tf.__version__ < "2" else "checkpoint manager"
NIGHTLY = pytest.mark.nightly


def state(folder: pathlib.Path) -> dict[str, tuple[bytes, int]]:
    """Return content and time of the files below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCRIPTS)
def test_no_run_of_verify_leaves_a_checkpoint(python: Python, name: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPTS[name])
    done = python(tmp_path, "-m", "npu_shim", "verify", "train.py")
    assert done.returncode == 0 and done.stdout.endswith("The two scripts agree.\n"), done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("name", [name if name == BY_DAY else pytest.param(name, marks=NIGHTLY) for name in SCRIPTS])
def test_runs_of_verify_start_from_the_same_checkpoint(
    python: Python, verify_command: VerifyCommand, name: str, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPTS[name])
    done = python(folder, "train.py")
    assert done.returncode == 0, done.stdout
    before = state(folder)
    code, output, _ = verify_command(folder, "-r", str(tmp_path / "report"), "train.py")
    assert code == 0, output
    assert "The two scripts agree. Both start from the checkpoint model/" in output
    found = json.loads((tmp_path / "report" / "verify.json").read_text())
    assert found["original"]["restored"] == found["migrated"]["restored"] != []
    assert state(folder) == before


@pytest.mark.once_tf115
def test_a_verify_that_ends_early_restores_files(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "project"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "best").write_text("mine")
    line = "import shutil, time; shutil.rmtree('model'); open('log.txt', 'w').write('x'); time.sleep(60)\n"
    (folder / "train.py").write_text("import tensorflow\n" + line)
    process = subprocess.Popen(
        [sys.executable, "-m", "npu_shim", "verify", "train.py"], cwd=str(folder), env=training.environment()
    )
    end = time.monotonic() + 60
    while not (folder / "log.txt").exists() and time.monotonic() < end:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert (folder / "model" / "best").read_text() == "mine" and not (folder / "log.txt").exists()


@pytest.mark.parametrize("verb", ["assess", pytest.param("export", marks=NIGHTLY)])
@pytest.mark.once_tf115
def test_until_a_step_nothing_is_left(python: Python, verb: str, tmp_path: pathlib.Path) -> None:
    """A monitored session writes its graph before the first step."""
    (tmp_path / "train.py").write_text(MONITORED)
    options = ["train.py"] if verb == "assess" else ["--list", "--script", "train.py"]
    done = python(tmp_path, "-m", "npu_shim", verb, *options)
    assert done.returncode == 0, done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
