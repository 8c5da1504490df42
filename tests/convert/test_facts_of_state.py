"""Rewrites that rest on facts of conditions, functions, sessions, models and steps, and findings that stay."""

from __future__ import annotations

from typing import Any

import pytest

from tests.convert.observed import converted_with_facts

PYTHON, NONE = {"is": "python"}, {"is": "none"}
BOOL = {"is": "tensor", "dtype": "bool"}
TF1 = "import tensorflow.compat.v1 as tf\n\n\n"
LAYER = TF1 + "def f(net, training):\n    return tf.layers.dropout(net, 0.25, training=training)\n"
SLIM = (
    "import tensorflow as tf\nfrom tensorflow.contrib import slim\n\n\n"
    "def f(net, training):\n    return slim.dropout(net, 0.75, is_training=training)\n"
)


def last_line(text: str, *notes: Any, **settings: Any) -> str:
    """Return the last line of a script converted with facts, without spaces around it."""
    result = converted_with_facts(text, *notes, **settings)
    assert [d.runs for d in result.diagnostics if d.kind == "change"] == ([2] if result.new else [])
    return (result.new or text.encode()).decode().splitlines()[-1].strip()


@pytest.mark.parametrize("text", [LAYER, SLIM])
def test_a_condition_of_python_chooses_the_operator(text: str) -> None:
    assert last_line(text, PYTHON) == "return npu_ops.dropout(net, 0.75) if training else net"


@pytest.mark.parametrize("text", [LAYER, SLIM])
def test_a_boolean_tensor_is_the_condition_of_tf_cond(text: str) -> None:
    assert last_line(text, BOOL) == "return tf.cond(training, lambda: npu_ops.dropout(net, 0.75), lambda: net)"


@pytest.mark.parametrize(
    "seen",
    [{}, NONE, {"is": ["python", "none"]}, {"is": ["python", "tensor"], "dtype": "bool"}, {**BOOL, "dtype": "int32"}],
)
@pytest.mark.parametrize("text", [LAYER, SLIM])
def test_other_conditions_stay_findings(text: str, seen: Any) -> None:
    (diagnostic,) = converted_with_facts(text, seen).diagnostics
    assert diagnostic.kind != "change" and diagnostic.message.startswith("the condition of ")


def test_no_facts_for_a_rule_leave_its_finding() -> None:
    assert "tf.layers.dropout" in last_line(LAYER, PYTHON, no_facts_for=("NPU107",))


BOTH = "import tensorflow as tf\n\n\ndef f(net):\n    return tf.nn.dropout(net, 0.25)\n"
OF_1 = ["x", "keep_prob", "noise_shape", "seed", "name", "rate"]
OF_2 = ["x", "rate", "noise_shape", "seed", "name"]


@pytest.mark.parametrize("parameters, keep", [(OF_1, "0.25"), (OF_2, "0.75")])
def test_the_dropout_that_ran_says_what_its_second_argument_is(parameters: list[str], keep: str) -> None:
    line = last_line(BOTH, {"parameters": [tuple(parameters)]})
    assert line == f"return npu_ops.dropout(net, {keep})"


@pytest.mark.parametrize("seen", [{}, {"parameters": [("x", "p")]}, {"parameters": [tuple(OF_1), tuple(OF_2)]}])
def test_a_dropout_of_both_versions_stays_a_finding(seen: Any) -> None:
    assert last_line(BOTH, seen) == "return tf.nn.dropout(net, 0.25)"
