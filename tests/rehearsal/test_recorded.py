"""verify --record writes a recording with which verify --against compares a migrated script, also on other versions."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.rehearsal.test_mutants import IS_TF2
from tests.verify_command import VerifyCommand

SESSION = """
import sys
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
random = np.random.RandomState(0)
x = v1.placeholder(tf.float32, [8, 6], "x")
w = v1.get_variable("w", [6, 40], initializer=v1.random_normal_initializer(stddev=0.3))
v = v1.get_variable("v", [40, 1], initializer=v1.glorot_uniform_initializer())
loss = tf.reduce_mean((tf.matmul(tf.tanh(tf.matmul(x, w)), v) - 1) ** 2)
train = v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, v1.train.get_or_create_global_step())
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for number in range(int(sys.argv[1])):
        session.run([train, loss], {x: random.rand(8, 6)})
"""

FIT = """
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
x = random.rand(40, 6).astype("f4")
net = tf.keras.Sequential([tf.keras.layers.Dense(40, "tanh"), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")
net.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(16), epochs=2, verbose=0)
"""


class Host:
    """A folder in which the command runs."""

    def __init__(self, verify_command: VerifyCommand, folder: pathlib.Path) -> None:
        self._command, self.folder = verify_command, folder
        self.output = ""

    def verify(self, script: str, *options: str) -> Any:
        """Run the command for a script with one argument. Return the result and its exit code."""
        (self.folder / "train.py").write_text(script, encoding="utf-8")
        shutil.rmtree(self.folder / "report", ignore_errors=True)
        code, self.output, found = self._command(self.folder, *options)
        return {**found, "code": code}


@pytest.fixture
def host(verify_command: VerifyCommand, tmp_path: pathlib.Path) -> Host:
    return Host(verify_command, tmp_path)


@pytest.mark.smoke
def test_a_recording_of_a_session_is_compared_elsewhere(
    host: Host, verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    assert (
        host.verify(SESSION, "--record", "r", "--perturbed", "2", "--tensors", "1,3", "train.py", "--", "4")["code"]
        == 0
    )
    (tmp_path / "there").mkdir()
    shutil.move(str(tmp_path / "r"), str(tmp_path / "there" / "r"))
    there = Host(verify_command, tmp_path / "there")
    drawn = SESSION.replace("stddev=0.3", "stddev=0.4")  # as another version draws other numbers
    found = there.verify(drawn, "--against", "r", "--initial-variables", "train.py")
    assert (found["code"], found["verdict"], found["migrated"]["steps"]) == (0, "agree", 4), there.output
    assert found["original"]["script"] == "train.py" and not found["migrated"]["converted_in_memory"]


def test_a_migrated_script_that_dumps_ends_after_the_last_dumped_step(host: Host, tmp_path: pathlib.Path) -> None:
    assert host.verify(SESSION, "--record", "r", "--perturbed", "2", "train.py", "--", "6")["code"] == 0
    dump = ["--against", "r", "--dump-steps", "0,2", "--dump"]
    found = host.verify(SESSION, *dump, "agrees", "train.py")
    assert (found["code"], found["original"]["steps"], found["migrated"]["steps"]) == (0, 6, 3), host.output
    assert sorted(path.name for path in (tmp_path / "agrees").iterdir()) == ["0", "2"]
    late = SESSION.replace("rand(8, 6)", "rand(8, 6) * (1.01 if number == FROM else 1)")
    assert host.verify(late.replace("FROM", "4"), *dump, "after", "train.py")["code"] == 0, host.output
    found = host.verify(late.replace("FROM", "1"), *dump, "before", "train.py")
    assert (found["code"], found["first_departure"]["step"]) == (1, 2), host.output


@pytest.mark.nightly
def test_a_defect_is_found_with_the_elements_of_the_recorded_step(host: Host, tmp_path: pathlib.Path) -> None:
    assert (
        host.verify(SESSION, "--record", "r", "--perturbed", "2", "--tensors", "3", "train.py", "--", "4")["code"] == 0
    )
    assert host.verify(SESSION, "--against", "r", "train.py")["migrated"]["converted_in_memory"]  # it is the original
    drawn = SESSION.replace("stddev=0.3", "stddev=0.4")
    late = SESSION.replace("rand(8, 6)", "rand(8, 6) * (1.001 if number == 2 else 1)")
    found = host.verify(late, "--against", "r", "train.py")
    first = found["first_departure"]
    assert (found["code"], first["step"], first["kind"], len(first["elements"])) == (1, 3, "input", 10), host.output
    found = host.verify(drawn, "--against", "r", "train.py")
    first = found["first_departure"]
    assert (found["code"], first["kind"], first["name"], first["step"]) == (1, "initial variable", "w", 0), host.output
    assert len(first["elements"]) == 10  # a whole tensor of the recording, and one of the migrated script
    assert "Compare with --initial-variables." in host.output
    recording = tmp_path / "r" / "recording.jsonl"
    recording.write_bytes(recording.read_bytes()[:-9])
    assert host.verify(SESSION, "--against", "r", "train.py")["code"] == 2
    assert host.output.count("\n") == 1 and "recording.jsonl is damaged" in host.output


@pytest.mark.nightly
def test_an_original_that_is_not_reproducible_is_named_when_it_is_recorded(host: Host) -> None:
    script = SESSION.replace("RandomState(0)", "RandomState(int.from_bytes(open('/dev/urandom', 'rb').read(4), 'big'))")
    found = host.verify(script, "--record", "r", "--perturbed", "2", "train.py", "--", "3")
    assert (found["code"], found["verdict"]) == (3, "not reproducible"), host.output


@pytest.mark.nightly
def test_a_band_of_half_precision_travels(host: Host) -> None:
    options = ["--half", "--perturbed", "2", "train.py", "--", "4"]
    assert host.verify(SESSION, "--record", "r", *options)["code"] == 0, host.output
    found = host.verify(SESSION, "--against", "r", "train.py")
    assert (found["code"], found["half"]["dtype"], found["half"]["perturbed_runs"]) == (0, "float16", 2), host.output
    wrong = SESSION.replace("tf.tanh", "tf.sin")
    assert host.verify(wrong, "--against", "r", "train.py")["code"] == 1


LOOP = """
import numpy as np
import tensorflow as tf

net = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(6,))])
optimizer = tf.keras.optimizers.SGD(0.01)
for batch in np.random.RandomState(0).rand(3, 8, 6).astype("f4"):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(batch) - 1))
    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
"""

STRATEGY = """
import tensorflow as tf

from npu_shim.rehearsal.recording import variables


class Sink:
    steps, at_end, ended_within_step = 1, [], False

    def record_final_variables(self, rows):
        print(rows)


with tf.distribute.MirroredStrategy().scope():
    variable = tf.Variable(2.0)
    variables.EagerVariables(Sink())._own.append(variable)
    Sink.at_end[0]()
"""

if IS_TF2:

    def test_the_variables_of_a_strategy_are_recorded() -> None:
        """Outside its replicas they have no handle."""
        output = subprocess.check_output(
            [sys.executable, "-c", STRATEGY], stderr=subprocess.DEVNULL, universal_newlines=True
        )
        assert "('Variable', array(2., dtype=float32))" in output

    @pytest.mark.nightly
    def test_ranks_that_average_nothing_are_found_against_a_recording(host: Host) -> None:
        assert host.verify(LOOP, "--record", "r", "--perturbed", "2", "train.py")["code"] == 0, host.output
        found = host.verify(LOOP + "# migrated\n", "--against", "r", "--ranks", "2", "train.py")
        assert found["code"] == 1 and "othing is averaged" in host.output, host.output

    @pytest.mark.nightly
    def test_the_deliberate_changes_of_the_migration_are_in_the_recording(host: Host) -> None:
        assert host.verify(FIT, "--record", "r", "--perturbed", "2", "train.py")["code"] == 0, host.output
        static = FIT.replace(".batch(16)", ".batch(16, drop_remainder=True)").replace('"sgd"', "'sgd'")
        found = host.verify(static, "--against", "r", "train.py")
        assert (found["code"], found["deliberate"][0]["code"]) == (0, "NPU109"), host.output
        assert host.verify(FIT, "--record", "r", "--strict", "--perturbed", "2", "train.py")["code"] == 1
        assert host.verify(static, "--against", "r", "train.py")["code"] == 1
