"""Record on the CPU, dump on a card whose engine is a double, compare: the commands of docs/accuracy.md, in processes."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from conftest import FOLDER, HERE
from dumping_engine import PLANTED, WRONG, write_startup

from npu_shim.dumps import dump_comparison
from samples import training

ROOT = os.path.dirname(os.path.dirname(HERE))
HEAD = """
import numpy as np
import tensorflow as tf
{imports}
v1 = tf.compat.v1
v1.disable_eager_execution()
X = np.random.RandomState(0).normal(size=(16, 8)).astype("f4")


def model(x):
    hidden = v1.layers.dense(x, 32, tf.nn.relu, name="hidden")
    return v1.layers.dense({dropout}, 1, name="out")


x = v1.placeholder(tf.float32, [16, 8], "x")
loss = tf.reduce_mean(tf.square(model(x) - tf.reduce_sum(x, 1, keepdims=True)), name="loss")
train = v1.train.AdamOptimizer(0.01).minimize(loss)
with v1.Session({config}) as session:
    session.run(v1.global_variables_initializer())
    for step in range(9):
        session.run([train, loss], {{x: X}})
"""
ORIGINAL = HEAD.format(imports="", dropout="v1.nn.dropout(hidden, rate=0.3)", config="")
MIGRATED = HEAD.format(
    imports="from npu_shim.npu_init import *",
    dropout="npu_ops.dropout(hidden, 0.7)",
    config="config=npu_config_proto()",
)


def verify(folder: pathlib.Path, *arguments: str, path: str = "", **variables: str) -> str:
    """Run ``npu-shim verify``. Return what it prints."""
    return command(folder, "verify", *arguments, path=path, **variables)


def command(folder: pathlib.Path, verb: str, *arguments: str, path: str = "", code: int = 0, **variables: str) -> str:
    """Run ``npu-shim``, and check its exit code. Return what it prints."""
    environment = {**training.environment(), "NPU_SHIM_FALLBACK": "silent", **variables}
    paths = [path, ROOT, os.path.join(ROOT, "tools"), HERE, FOLDER]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", verb, *arguments],
        cwd=str(folder),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    logs = [each.read_text(errors="replace") for each in folder.glob("**/output.log")]
    assert done.returncode == code, "\n".join([done.stdout, *logs])
    return done.stdout


def compared(card: pathlib.Path, cpu: pathlib.Path) -> Any:
    """Return the result of a comparison."""
    return dump_comparison.compare_dumps(str(card), str(cpu))


@pytest.mark.nightly
def test_a_card_that_dumps_is_compared_with_the_recording(tmp_path: pathlib.Path) -> None:
    (tmp_path / "original.py").write_text(ORIGINAL)
    (tmp_path / "migrated.py").write_text(MIGRATED)
    verify(tmp_path, "--record", "recording", "--dump", "cpu", "--dump-steps", "0,2", "--perturbed", "2", "original.py")
    write_startup(tmp_path, [ROOT, FOLDER, HERE], os.path.join(FOLDER, "davinci[0-9]*"))
    against = ["--against", "recording", "--initial-variables", "--dump-steps", "0,2", "migrated.py", "-r"]
    shown = verify(tmp_path, *against, "clean", "--dump", "card", path=str(tmp_path))
    assert "The two scripts agree." in shown
    assert len(json.loads((tmp_path / "card" / "draws.json").read_text())["shared"]) == 1
    found = compared(tmp_path / "card", tmp_path / "cpu")
    steps = {each.step for each in found.tensors}
    assert (found.verdict, steps, found.problems) == ("agrees", {0, 2}, [])
    ops = {each.op for each in found.tensors}
    assert any("dropout" in op for op in ops) and any(op.startswith("gradients/") for op in ops) and len(ops) > 40
    operator = "MatMulBiasAdd_of_out/MatMul"
    verify(tmp_path, *against, "planted", "--dump", "bad", path=str(tmp_path), **{PLANTED: operator})
    first = compared(tmp_path / "bad", tmp_path / "cpu").first_departure
    assert (first.step, first.operator, first.inputs) == (0, operator, "agree")
    assert first.line.startswith("original.py:") and first.cause.startswith("factor: the elements are 1.5 times")


@pytest.mark.nightly
def test_diagnose_walks_to_an_operator_through_processes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "original.py").write_text(ORIGINAL)
    (tmp_path / "migrated.py").write_text(MIGRATED)
    verify(tmp_path, "--record", "recording", "original.py")
    write_startup(tmp_path, [ROOT, FOLDER, HERE], os.path.join(FOLDER, "davinci[0-9]*"))
    operator = "MatMulBiasAdd_of_out/MatMul"
    given = ["--against", "recording", "-r", "out", "migrated.py"]
    planted = {PLANTED: operator, WRONG: "1"}
    shown = command(tmp_path, "diagnose", *given, path=str(tmp_path), code=1, **planted)
    found = json.loads((tmp_path / "out" / "diagnose.json").read_text())
    names = [stage["name"] for stage in found["stages"]]
    assert names == ["card", "script", "precision", "overflow", "fusion", "repeat", "operators"], shown
    assert found["cause"]["title"] == f"operator {operator} (MatMul)", shown
    assert any("original.py" in line or "migrated.py" in line for line in found["cause"]["evidence"])
    assert all(os.path.isdir(stage["folder"]) for stage in found["stages"] if stage["name"] != "precision")
    again = command(tmp_path, "diagnose", *given, path=str(tmp_path), code=1, **planted)  # nothing runs again
    assert "operators: done before" in again
    clean = command(tmp_path, "diagnose", *given[:2], "-r", "clean", "migrated.py", path=str(tmp_path))
    assert "The card agrees with the recording" in clean
