"""tf.function takes npu_shim's functions as they are, without a warning, and converts those of the script."""

from __future__ import annotations

import ast

import pytest

SCRIPT = """
import tensorflow as tf
tf.compat.v1.enable_eager_execution()
from npu_shim import data
from npu_shim.horovod import tensorflow as hvd
from npu_shim.npu_init import *
hvd.init()
variable = tf.Variable([1.0])

def train(x):
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        tape.watch(x)
        if tf.reduce_sum(x) > 0:
            y = x * x
        else:
            y = -x
    return tape.gradient(y, [x])[0]

def result(step):
    return [step(tf.constant(x)).numpy().tolist() for x in ([3.0, 4.0], [-3.0, -4.0])]

STEPS
"""
FUNCTIONS = {
    "npu_unary_ops.gelu(x)": [],
    "npu_ops.dropout(x, 1.0)": [[3.0, 4.0], [-3.0, -4.0]],
    "hccl_ops.allreduce(x, 'sum')": [[3.0, 4.0], [-3.0, -4.0]],
    "npu_allreduce([x])[0]": [[3.0, 4.0], [-3.0, -4.0]],
    "data.masked_where(x > 0, size=2)[1]": [],
    "hvd.allreduce(x, op=hvd.Sum)": [[3.0, 4.0], [-3.0, -4.0]],
    "[hvd.broadcast_variables([variable], 0), x][1]": [[3.0, 4.0], [-3.0, -4.0]],
    "train(x)": [[6.0, 8.0], [-1.0, -1.0]],
}


@pytest.fixture(scope="module")
def done(python, tmp_path_factory):
    """Run all functions in one process."""
    script = tmp_path_factory.mktemp("autograph") / "train.py"  # AutoGraph reads the source of what it converts
    steps = [f"print(result(tf.function(lambda x: {expression})))" for expression in FUNCTIONS]
    script.write_text(SCRIPT.replace("STEPS", "\n".join(steps)))
    return python(script.parent, str(script))


@pytest.mark.parametrize("expression", list(FUNCTIONS))
def test_a_function_in_tf_function(expression, done):
    results = dict(zip(FUNCTIONS, (line for line in done.stdout.splitlines() if line.startswith("[["))))
    assert expression in results, done.stdout
    if FUNCTIONS[expression]:
        assert ast.literal_eval(results[expression]) == FUNCTIONS[expression]


def test_autograph_warns_of_no_function(done):
    assert done.returncode == 0 and "AutoGraph" not in done.stdout, done.stdout
