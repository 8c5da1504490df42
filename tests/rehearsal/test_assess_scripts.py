"""assess on whole scripts: the ranks of a job, and the evaluation of an Estimator."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

from samples import training
from tests.rehearsal.test_mutants import HAS_ESTIMATOR

TRAIN_AND_EVALUATE = """
import sys
sys.path.insert(0, sys.argv[1])
import original as sample
tf = sample.tf
tf.disable_v2_behavior()
sample.FLAGS(["digits"])
job = tf.estimator.Estimator(sample.model_fn)
tf.estimator.train_and_evaluate(
    job, tf.estimator.TrainSpec(sample.train_input_fn, max_steps=200), tf.estimator.EvalSpec(sample.eval_input_fn))
"""


def assess(*arguments: str) -> Any:
    """Return the assessment as data."""
    done = subprocess.run(
        [sys.executable, "-m", "npu_shim", "assess", "--json", "-", *arguments],
        env=training.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_collectives_of_ranks_are_listed_and_cut_no_step(repo_root: pathlib.Path) -> None:
    found = assess("--ranks", "2", str(repo_root / "samples" / "digits_session" / "distributed_npu.py"))
    assert (found["ranks"], found["problems"]) == (2, [])
    [graph] = [each for each in found["graphs"] if each["kind"] == "train"]
    assert len(graph["partition"]["clusters"]) == 1
    [row] = graph["collectives"]
    assert row["op"] == "HcomAllReduce" and row["count"] >= 2
    assert 4 * 37_000 < row["bytes"] < 4 * 40_000, "the gradients of 38,266 weights"


PIPELINE = """
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_v2_behavior()
mean = v1.get_variable("mean", [], tf.float32, use_resource=True)
data = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x - mean).batch(2).repeat()
batch = v1.data.make_initializable_iterator(data)
fed = v1.placeholder(tf.float32, [None, 4])
_, total = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(fed)), [0, 0.0])
weight = v1.get_variable("weight", [])
loss = (tf.reduce_sum(batch.get_next()) * weight) ** 2 + total
train = v1.train.GradientDescentOptimizer(0.001).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    session.run(batch.initializer)
    session.run([train, loss], {fed: np.zeros([3, 4])})
"""


def test_a_variable_of_the_pipeline_and_old_control_flow_are_problems(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PIPELINE)
    problems = assess(str(tmp_path / "train.py"))["problems"]
    [pipeline] = [row for row in problems if row["what"] == "VarHandleOp mean"]
    assert "the NPU initializes it" in pipeline["why"] and pipeline["lines"] == ["train.py:6"]
    [control] = [row for row in problems if "NextIteration" in row["what"]]
    assert "tf.enable_control_flow_v2()" in control["why"]


FLOAT64 = """
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_v2_behavior()
x = v1.placeholder(tf.float64, [4, 3])
weight = v1.get_variable("weight", [3, 1], tf.float64)
train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.matmul(x, weight) ** 2))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    session.run(train, {x: np.ones([4, 3])})
"""


def test_float64_is_reported_with_its_operators(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(FLOAT64)
    [graph] = [each for each in assess(str(tmp_path / "train.py"))["graphs"] if each["kind"] == "train"]
    assert "MatMul" in str(graph["dtypes"]) and "train.py:6" in str(graph["dtypes"])


if HAS_ESTIMATOR:

    def test_the_evaluation_of_train_and_evaluate_is_a_graph(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
        script = tmp_path / "train.py"
        script.write_text(TRAIN_AND_EVALUATE)
        found = assess(str(script), "--", str(repo_root / "samples" / "digits_estimator"))
        assert [graph["kind"] for graph in found["graphs"]] == ["train", "other"]
        counts = {row["op"]: row["count"] for row in found["graphs"][1]["operators"]}
        assert counts["Conv2D"] == 2 and "Conv2DBackpropFilter" not in counts
