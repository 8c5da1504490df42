"""``npu-shim run --half`` and ``--numerics`` with whole scripts."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

SCRIPT = """
import sys
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
w = v1.get_variable("w", initializer=np.full((1, 1), 14, "f4"))
y = tf.exp(tf.matmul(tf.ones([2, 1]), w))
train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    print(sys.argv[1:], float(session.run([y, train])[0][0, 0]))  # NumPy 2 prints large numbers differently
"""


@pytest.mark.once
@pytest.mark.parametrize(
    "options, arguments, printed",
    [
        (["--half", "--numerics", "numbers"], [], "[] inf"),
        pytest.param(["--half", "bfloat16"], ["--half"], "['--half'] 1204224.0", marks=pytest.mark.nightly),
        (["--half", "--saturate"], [], "[] 65504.0"),
    ],
)
def test_a_script_runs_in_half_precision(
    options: list[str], arguments: list[str], printed: str, tmp_path: pathlib.Path, python: Any
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = python(tmp_path, "-m", "npu_shim", "run", *options, "train.py", *arguments)
    assert done.returncode == 0, done.stdout[-3000:]
    assert printed in done.stdout
    assert ("Exp Exp (1 time)" in done.stdout) == ("--saturate" in options)
    if "--numerics" in options:
        assert "step 1: the first op with Inf or NaN is Exp 'Exp' (train.py:9)" in done.stdout
        assert (tmp_path / "numbers" / "numerics.html").exists()
