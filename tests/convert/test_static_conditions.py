"""Conditions that Python evaluates while the graph is built, so that dropout may depend on them."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import Converter

HEAD = "import tensorflow.compat.v1 as tf\n"
DROP = "y = tf.layers.dropout(x, 0.1, training=%s)\n"
DECIDED = {
    "a comparison with a mode key": ("", "mode == tf.estimator.ModeKeys.TRAIN"),
    "a comparison with a text": ("", "mode == 'train'"),
    "a negation, which no tensor has": ("", "not evaluating"),
    "a test for None": ("", "labels is not None"),
    "a conjunction that ends in a decided one": ("", "FLAGS.x and mode != 'eval'"),
    "a command line flag": ("FLAGS = tf.app.flags.FLAGS\n", "FLAGS.train"),
    "a bool": ("", "bool(config.train)"),
    "a name bound to one": ("training = mode == 'train'\n", "training"),
}
OPEN = {
    "a name that nothing is known of": ("", "training"),
    "a placeholder": ("training = tf.placeholder(tf.bool)\n", "training"),
    "a conjunction that ends in an open one": ("", "mode == 'train' and flag"),
    "a comparison of two values": ("", "step < last"),
    "a bool of the project": ("from mine import bool\n", "bool(x)"),
    "an attribute": ("", "config.train"),
}
FUNCTIONS = {
    "tested by if at its start": ("    if training:\n        x = noise(x)\n", True),
    "tested by a negation": ("    assert not training or x\n", True),
    "tested in a conditional expression": ("    r = f(0.5 if training else 0)\n", True),
    "an attribute, tested": ("    if not self.training:\n        log()\n", True),
    "tested in a branch alone": ("    if deep:\n        if training:\n            x = noise(x)\n", False),
    "tested behind a return": ("    if deep:\n        return x\n    if training:\n        x = noise(x)\n", False),
    "tested when something else holds": ("    if deep and training:\n        x = noise(x)\n", False),
    "tested in a lambda": ("    f = lambda: 1 if training else 0\n", False),
    "tested by TensorFlow": ("    x = tf.cond(training, f, g)\n", False),
    "bound anew": ("    if training:\n        log()\n    training = tf.constant(True)\n", False),
    "handed on to the function itself": ("    f(self, x, training)\n", False),
}


def turned_over(text: str) -> bool:
    result = Converter().convert((HEAD + text).encode())
    assert not result.unreadable
    return result.new is not None


@pytest.mark.parametrize("before,condition", list(DECIDED.values()), ids=list(DECIDED))
def test_a_condition_is_static(before: str, condition: str) -> None:
    assert turned_over(before + DROP % condition)


@pytest.mark.parametrize("before,condition", list(OPEN.values()), ids=list(OPEN))
def test_a_condition_is_not_static(before: str, condition: str) -> None:
    assert not turned_over(before + DROP % condition)


@pytest.mark.parametrize("body,expected", list(FUNCTIONS.values()), ids=list(FUNCTIONS))
def test_an_argument_that_its_function_tests_is_no_tensor(body: str, expected: bool) -> None:
    name = "self.training" if "self.training" in body else "training"
    text = "def f(self, x, training):\n" + body + "    " + DROP % name + "    return y\n"
    assert turned_over(text + "f(None, x, flag)\n") == expected


def test_a_recursive_function_is_static_if_its_callers_are() -> None:
    text = "def f(x, training):\n    if x:\n        f(x, training)\n    " + DROP % "training" + "    return y\n"
    assert turned_over(text + "f(x, True)\n")
    assert not turned_over(text + "f(x, flag)\n")
