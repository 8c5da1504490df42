"""The benchmarks of ops and of training on the CPU run and agree with their baselines; their figures decide nothing."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest
import tensorflow as tf


@pytest.mark.parametrize("op", ["gelu", "dropout"])
def test_it_runs_and_the_forms_agree(repo_root, op):
    variants = ["float16", "float32, memory kept"]
    command = [sys.executable, str(repo_root / "benchmarks" / (op + ".py")), "--quick", "--variants"] + variants
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[{")))
    wanted = [
        (dtype, memory, count)
        for dtype, memory in (("float32", "kept"), ("float16", "as it is"))
        for count in (1000, 100_000)
    ]
    assert [(row["type"], row["memory"], row["elements"]) for row in rows] == wanted
    assert all({"ours", "limit"} < set(row[part]) for row in rows for part in ("forward", "both", "kept"))
    assert {row["kept"]["ours"] for row in rows if row["elements"] == 100_000} == {1 if op == "gelu" else 0}
    assert len([line for line in done.stdout.splitlines() if line.startswith("|")]) == 2 + 4


@pytest.mark.parametrize("op, passes", [("gelu", ["AddV2", "Mul"]), ("dropout", ["AddV2", "Neg"])])
def test_the_limit_of_both_passes_runs_one_op_for_each(repo_root, monkeypatch, op, passes):
    """TensorFlow's graph passes make one op of some pairs, which would show a limit that is too low."""
    monkeypatch.syspath_prepend(str(repo_root))
    form = importlib.import_module("benchmarks." + op).forms()["limit"]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.get_variable("x", initializer=tf.ones([100]), use_resource=True)
        sess.run(v1.global_variables_initializer())
        value = x.read_value()
        y = form(value)
        (gradient,) = tf.gradients(y, value, grad_ys=y)
        ran = v1.RunMetadata()
        sess.run(gradient, options=v1.RunOptions(output_partition_graphs=True), run_metadata=ran)
    nodes = [node for graph in ran.partition_graphs for node in graph.node]
    fixed = ("Const", "VarHandleOp", "ReadVariableOp", "_Retval")
    assert sorted(node.op for node in nodes if node.op not in fixed) == passes


def test_a_migrated_script_has_the_losses_of_the_original(repo_root):
    command = [sys.executable, str(repo_root / "benchmarks" / "rehearsal.py"), "--quick", "--models", "encoder"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert row["model"] == "encoder" and row["difference"]["migrated"] <= 1e-5
    assert 1 <= row["limit"] < 100, "some of the time is in matrix products"
    assert all(row[side]["seconds"] > 0 and row[side]["peak_mb"] > 100 for side in ("original", "migrated"))
