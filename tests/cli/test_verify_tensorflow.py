"""``npu-shim verify`` of scripts that import a part of npu_shim before TensorFlow, and of Keras models on ranks."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
from typing import Any, Callable

import pytest
import tensorflow as tf

from tests.marks import of_version_1
from tests.verify_command import VerifyCommand

Python = Callable[..., "subprocess.CompletedProcess[str]"]

SCRIPT = """
IMPORT
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [8, 4])
w = v1.get_variable("w", initializer=np.ones([4, 1], "f4"))
train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(tf.matmul(x, w))))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(3):
        session.run(train, {x: np.ones([8, 4], "f4")})
"""


KERAS = """
import npu_shim.horovod.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
x = np.random.RandomState(0).rand(32, 4).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,), kernel_initializer="ones")])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), "mse")
model.fit(x, x.sum(1), batch_size=8, epochs=2, verbose=0, shuffle=False)
"""


# What a script saves: the graph of a session with its update, and a function with a tape.
SAVED_GRAPH = (
    SCRIPT.replace("IMPORT", "")
    + """
    v1.train.Saver([v for v in v1.global_variables()]).save(session, "net/model")
if b"PyFunc" in open("net/model.meta", "rb").read():
    raise SystemExit("a note is in the graph")
"""
)
SAVED_MODULE = """
import tensorflow as tf

class Net(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([8, 4], tf.float32)])
    def train(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ self.w))
        self.optimizer.apply_gradients([(tape.gradient(loss, self.w), self.w)])
        tf.summary.scalar("loss", loss, step=0)
        return loss

net = Net()
net.w, net.optimizer = tf.Variable(tf.ones([4, 1])), tf.keras.optimizers.SGD(0.1)
for step in range(3):
    net.train(tf.ones([8, 4]))
tf.saved_model.save(net, "net")
if b"PyFunc" in open("net/saved_model.pb", "rb").read():
    raise SystemExit("a note is in the graph")
"""


def verified(verify_command: VerifyCommand, script: str, folder: pathlib.Path, alias: str) -> Any:
    """Verify a script, and return the report."""
    (folder / "train.py").write_text(script)
    code, output, found = verify_command(folder, "train.py", NPU_SHIM_ALIAS=alias)
    assert code == 0, output
    return found


@pytest.mark.smoke
@pytest.mark.parametrize(
    "first, alias",
    [
        ("import npu_shim.horovod.tensorflow as hvd; hvd.init()", "0"),
        pytest.param("import horovod.tensorflow as hvd; hvd.init()", "1", marks=pytest.mark.nightly),
        pytest.param("from npu_shim.npu_init import *", "0", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.slow
@pytest.mark.once_tf115
def test_a_part_of_npu_shim_may_import_tensorflow(
    verify_command: VerifyCommand, first: str, alias: str, tmp_path: pathlib.Path
) -> None:
    found = verified(verify_command, SCRIPT.replace("IMPORT", first), tmp_path, alias)
    assert found["original"]["steps"] == found["migrated"]["steps"] == 3
    assert {"loss", "gradient", "variable"} <= {stream["kind"] for stream in found["streams"]}


@of_version_1
def test_both_scripts_have_the_same_final_variables(verify_command: VerifyCommand, tmp_path: pathlib.Path) -> None:
    """In TensorFlow 1, the migrated script closes the session of Keras, and the original does not."""
    found = verified(verify_command, KERAS, tmp_path, "0")
    assert found["only_original"] == found["only_migrated"] == []
    assert len([stream for stream in found["streams"] if stream["kind"] == "final variable"]) == 2
    assert found["original"]["steps"] == 8


@pytest.mark.once_tf115
def test_a_script_that_fails_later_does_not_differ_by_what_it_lacks(
    verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    script = SCRIPT.replace("IMPORT", "import sys").replace("range(3)", "range(5)")
    script += "        print(session.run(w * 2.0)) if step == 4 else None\n"
    line = "        session.run(train"
    script = script.replace(line, "        assert step < 3 or not sys.argv[0].endswith('fails.py')\n" + line)
    for name in ("train.py", "fails.py"):
        (tmp_path / name).write_text(script)
    code, output, found = verify_command(tmp_path, "train.py", "fails.py")
    assert code == 2 and "fails.py ended with exit code 1 after 3 recorded steps." in output, output
    assert "The first difference" not in output and "The comparison could not run to its end." in output
    assert found["first_departure"] is None and found["only_original"] == found["only_migrated"] == []


if importlib.util.find_spec("keras"):

    def test_keras_may_come_before_tensorflow(python: Python, tmp_path: pathlib.Path) -> None:
        (tmp_path / "train.py").write_text(SCRIPT.replace("IMPORT", "from keras import layers"))
        done = python(tmp_path, "-m", "npu_shim", "verify", "-r", "report", "train.py")
        assert done.returncode == 0 and "The two scripts agree" in done.stdout, done.stdout
        found = json.loads((tmp_path / "report" / "verify.json").read_text())
        assert found["verdict"] == "agree" and found["original"]["steps"] == 3


SAVES = {"graph": SAVED_GRAPH, **({} if tf.__version__.startswith("1.") else {"module": SAVED_MODULE})}


@pytest.mark.parametrize("script", SAVES.values(), ids=list(SAVES))
def test_graphs_that_a_recorded_script_saves_have_no_note(
    verify_command: VerifyCommand, script: str, tmp_path: pathlib.Path
) -> None:
    report = verified(verify_command, script, tmp_path, "0")
    assert (report["verdict"], report["original"]["steps"]) == ("agree", 3)
