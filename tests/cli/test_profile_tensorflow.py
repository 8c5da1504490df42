"""``npu-shim run --profile`` on the CPU: steps, ops with their lines, and waits, in the files of the NPU's profiler."""

from __future__ import annotations

import csv
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from npu_shim.profiles.profile_reader import read_profile
from npu_shim.profiles.profile_summary import to_page
from samples import training
from tests.distributed import forks

RUN = "import sys\nfrom npu_shim.cli import run\nsys.exit(run.main(sys.argv[1:]))\n"
HEAD = """
import time
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1
x = np.linspace(-1, 1, 320, dtype="f4").reshape(80, 4)
"""
SESSION = """
v1.disable_eager_execution()
def read(row):
    time.sleep(0.005)
    return row
data = tf.data.Dataset.from_tensor_slices(x).repeat().map(lambda row: tf.numpy_function(read, [row], tf.float32)).batch(8)
batch = v1.data.make_one_shot_iterator(data).get_next()
batch.set_shape([8, 4])
w = v1.get_variable("w", [4, 3])
loss = tf.reduce_mean(tf.square(tf.matmul(batch, w, name="product")))
train = v1.train.AdamOptimizer(0.1).minimize(loss)
def augment():
    time.sleep(0.02)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(8):
        augment()
        print("loss", session.run([loss, train])[0])
"""
KERAS = """
model = tf.keras.Sequential([tf.keras.layers.Dense(3)])
model.compile("sgd", "mse")
model.fit(x, x[:, :3], batch_size=8, epochs=1, verbose=0)
"""
LOOP = """
w, optimizer = tf.Variable(tf.ones([4, 3])), tf.keras.optimizers.SGD(0.1)
{decorator}
def train(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(batch, w)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
for batch in tf.data.Dataset.from_tensor_slices(x).batch(8):
    train(batch)
"""
JOB = """
import os
from npu_shim.npu_init import *
v1.disable_eager_execution()
w = v1.get_variable("w", [4, 3])
loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(x), w)))
train = NPUDistributedOptimizer(v1.train.AdamOptimizer(0.1)).minimize(loss)
with v1.Session(config=npu_config_proto()) as session:
    session.run(v1.global_variables_initializer())
    for step in range(8):
        time.sleep(0.3 * int(os.environ["RANK_ID"]))
        session.run(train)
"""
# Scripts that are slow in one way, and the bottleneck that the page of their profile names first
SLOW = """
v1.disable_eager_execution()
def read(row):
    time.sleep({read})
    return row
data = tf.data.Dataset.from_tensor_slices(x).repeat()
if {read}:
    data = data.map(lambda row: tf.numpy_function(read, [row], tf.float32))
batch = v1.data.make_one_shot_iterator(data.batch(8).prefetch(2)).get_next()
batch.set_shape([8, 4])
w = v1.get_variable("w", [4, 3])
hidden = tf.matmul(batch, w)
for _ in range({ops}):
    hidden = hidden * 1.001 + 0.001
train = v1.train.AdamOptimizer(0.001).minimize(tf.reduce_mean(tf.square(hidden)))
def augment():
    sum(number * number for number in range({augment}))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(24):
        augment()
        session.run(train)
"""
FIRST = {
    "data-bound": dict(read=0.01, ops=0, augment=0),
    "host-bound": dict(read=0, ops=0, augment=400000),
    "small-ops": dict(read=0, ops=800, augment=0),
}
WITHOUT_SHAPES = hasattr(tf.keras.optimizers.SGD, "apply")  # the trace of TensorFlow with Keras 3 has none
OTHERS = {"keras": KERAS, "function": LOOP.format(decorator="@tf.function"), "eager": LOOP.format(decorator="")}


def profiled(folder: pathlib.Path, script: str, *options: str) -> str:
    """Run a script with --profile. Return what it prints."""
    (folder / "run.py").write_text(RUN)
    (folder / "train.py").write_text(HEAD + script)
    arguments = ["--profile", str(folder / "profile"), *options, str(folder / "train.py")]
    return forks.run_script(
        folder / "run.py", *arguments, log=folder / "log", environ=training.environment(), cwd=folder
    )


def table(folder: pathlib.Path, name: str) -> list[dict[str, str]]:
    """Return the rows of a file of the profile."""
    (path,) = folder.glob(f"profile/PROF_*_CPU/mindstudio_profiler_output/{name}*.csv")
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def line_of(script: str, text: str) -> str:
    """Return where a text is in a script."""
    return f"train.py:{(HEAD + script)[: (HEAD + script).index(text)].count(chr(10)) + 1}"


def test_steps_ops_and_waits_of_a_session(tmp_path: pathlib.Path) -> None:
    printed = profiled(tmp_path, SESSION, "--profile-steps", "3-6")
    assert len(re.findall("loss", printed)) == 8  # the script goes on after the profile
    assert f"profiled steps 3 to 6. Read them with: npu-shim profile {tmp_path}/profile" in printed
    steps = table(tmp_path, "step_trace")
    assert [row["Iteration ID"] for row in steps] == ["3", "4", "5", "6"]
    for row, before in zip(steps[1:], steps):
        starts, passed, ends = (float(row[name]) for name in ("FP Start(us)", "BP End(us)", "Iteration End(us)"))
        assert float(before["Iteration End(us)"]) + 20e3 <= starts < passed < ends  # augment sleeps before
    ops = table(tmp_path, "op_summary")
    products = [row for row in ops if row["Op Name"] == "product"]
    assert len(products) == 4
    inputs = ("", "") if WITHOUT_SHAPES else ("8,4;4,3", "FLOAT;FLOAT")
    assert {(row["OP Type"], row["Input Shapes"], row["Input Data Types"]) for row in products} == {("MatMul", *inputs)}
    assert sum(row["OP Type"] == "IteratorGetNext" for row in ops) == 4
    assert "PyFunc" not in {row["OP Type"] for row in ops}  # it runs in the dataset
    lines = {row["op name"]: (row["op type"], row["line"]) for row in table(tmp_path, "lines")}
    assert lines["product"] == ("MatMul", line_of(SESSION, "loss = "))
    updates = {line for kind, line in lines.values() if "ApplyAdam" in kind}
    assert updates == {line_of(SESSION, "train = ")}
    apis = table(tmp_path, "api_statistic")
    names = {(row["Level"], row["API Name"]) for row in apis}
    assert ("host", f"{line_of(SESSION, 'time.sleep(0.02)')} (augment)") in names
    assert ("pipeline", f"{line_of(SESSION, 'time.sleep(0.005)')} (read)") in names
    found = to_page(read_profile(str(tmp_path / "profile")), "profile").to_json()
    assert not found["problems"]
    assert {"host-bound", "data-bound"} <= {each["id"] for each in found["findings"]}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["keras", *(["function", "eager"] if tf.__version__ >= "2" else [])])
def test_other_loops_are_profiled(kind: str, tmp_path: pathlib.Path) -> None:
    profiled(tmp_path, OTHERS[kind], "--profile-steps", "3-6")
    assert [row["Iteration ID"] for row in table(tmp_path, "step_trace")] == ["3", "4", "5", "6"]
    types = [row["OP Type"] for row in table(tmp_path, "op_summary")]
    assert sum("MatMul" in each for each in types) >= 8
    lines = {row["line"] for row in table(tmp_path, "lines") if "MatMul" in row["op type"]}
    assert line_of(OTHERS[kind], "model.fit" if kind == "keras" else "tf.matmul") in str(lines)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FIRST)
def test_the_cause_of_a_slow_script_is_named(name: str, tmp_path: pathlib.Path) -> None:
    profiled(tmp_path, SLOW.format(**FIRST[name]))
    found = to_page(read_profile(str(tmp_path / "profile")), "profile").to_json()
    assert not found["problems"]
    first = found["findings"][0]
    assert first["id"] == name and first["share"] > 0.3
    if name == "data-bound":
        assert "(read)" in str(first["evidence"])
    if name == "host-bound":
        assert "(augment)" in str(first["evidence"]) or "(<genexpr>)" in str(first["evidence"])
    if name == "small-ops":
        assert line_of(SLOW.format(**FIRST[name]), "hidden = hidden") in {row["line"] for row in first["evidence"]}


@pytest.mark.nightly
def test_a_profile_of_a_job_finds_the_slow_rank(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(HEAD + JOB)
    command = [sys.executable, "-m", "npu_shim", "launch", "--ranks", "2", "--profile", "profile"]
    command += ["--profile-steps", "2-6", "--log-dir", "logs", "train.py"]
    environ = {**training.environment(), "NPU_SHIM_FALLBACK": "silent"}
    done = subprocess.run(command, cwd=str(tmp_path), env=environ, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert f"Read them with: npu-shim profile {tmp_path}/profile\n" in (tmp_path / "logs" / "rank_1.log").read_text()
    found = to_page(read_profile(str(tmp_path / "profile")), "profile").to_json()
    assert not found["problems"] and len(found["devices"]) == 2
    (slow,) = (each for each in found["findings"] if each["id"] == "slow-rank")
    assert slow["evidence"][0]["what"] == "rank 1"
    assert "allreduce" in {row["type"] for row in found["types"]}


if tf.__version__ >= "2":  # TensorFlow 1 traces sessions, and has no profiler of the process

    @pytest.mark.nightly
    def test_a_script_that_profiles_itself_is_reported(tmp_path: pathlib.Path) -> None:
        begin = "tf.profiler.experimental.start('own')\n"
        with pytest.raises(AssertionError, match="the script profiles itself. TensorFlow has one profiler"):
            profiled(tmp_path, begin + OTHERS["function"], "--profile-steps", "3-6")


@pytest.mark.nightly
def test_a_script_with_too_few_steps_is_reported(tmp_path: pathlib.Path) -> None:
    printed = profiled(tmp_path, SESSION)
    assert "the script ended after 8 steps, before 10. Give earlier --profile-steps." in printed


@pytest.mark.once
@pytest.mark.parametrize(
    "options,words",
    [
        (["--profile-steps", "3"], "--profile-steps needs --profile. Add it."),
        (["--profile", "d", "--profile-steps", "a"], "a is not allowed: give steps from 0, like 5 or 10-12"),
        (["--profile", "d", "--profile-steps", "3,8"], "--profile-steps takes steps one after another from 1 on"),
        (["--profile", "d", "--profile-steps", "0-3"], "from 1 on, like 20-30: step 0 compiles."),
        (["--profile", "d", "--dump", "e"], "--dump slows the steps that --profile measures. Give one of the two."),
        (["--profile", "."], "--profile .: the folder is not empty. Give another one, or remove it."),
    ],
)
def test_wrong_options_are_refused(
    options: list[str],
    words: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    from npu_shim.cli import main

    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as error:
        sys.exit(main(["run", *options, "train.py"]))
    assert error.value.code == 2 and words in capsys.readouterr().err
    if "--dump" not in options and "-steps" not in options[-2]:
        assert main(["launch", "--ranks", "2", *options, "train.py"]) == 2
        assert words in capsys.readouterr().err
