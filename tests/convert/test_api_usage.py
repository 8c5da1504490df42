"""The calls that count as TensorFlow calls, their places and their results."""

from __future__ import annotations

import json

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import Calls, FileResult
from convert_tf2npu.engine.settings import Settings

TF = "import tensorflow as tf\n"


def convert(script: str) -> FileResult:
    return Converter(list_calls=True).convert(script.encode())


def listed(script: str) -> list[tuple[str, str, int, int]]:
    return [(call.name, call.outcome, call.line, call.col) for call in convert(TF + script).listed]


@pytest.mark.parametrize(
    "script, expected",
    [
        ("x = tf.compat.v1.reshape(y, [1])\n", [("tensorflow.reshape", "fine", 2, 5)]),
        (
            "from keras.layers import Dense\n\u00e9 = Dense(tf.abs(1))\n",
            [("tensorflow.keras.layers.Dense", "fine", 3, 5), ("tensorflow.abs", "fine", 3, 11)],
        ),
        ("import horovod.tensorflow as hvd\nhvd.init()\n", [("horovod.init", "fine", 3, 1)]),
        ("s = tf.Session()\n", [("tensorflow.Session", "change", 2, 5)]),
        ("s = tf.Session(**kw)\n", [("tensorflow.Session", "finding", 2, 5)]),
        (
            "def train_input_fn():\n    d = tf.data.Dataset.range(9)\n    return d.batch(4)\n",
            [("tensorflow.data.Dataset.range", "fine", 3, 9), (".batch", "change", 4, 12)],
        ),
        ('print(f"{tf.abs(1)}")\n', [("tensorflow.abs", "fine", 2, 7)]),
        (
            'flags = tf.app.flags\nflags.DEFINE_string("a", "", "")\nflags.FLAGS.a.split(",")\n',
            [("tensorflow.app.flags.DEFINE_string", "fine", 3, 1)],
        ),
        ('import os\nos.path.join("a")\nmine(1)\n', []),
        ("class A:\n    def f(self):\n        return self.batch(3)\n", []),
    ],
    ids=[
        "canonical name",
        "keras, characters",
        "horovod",
        "rewritten",
        "left",
        "method of a dataset",
        "in an f-string, at the string",
        "no values of flags",
        "no others",
        "no method of something else",
    ],
)
def test_calls_are_listed(script: str, expected: list[tuple[str, str, int, int]]) -> None:
    assert listed(script) == expected


def test_a_call_inside_a_string_that_cannot_be_edited_is_unchanged() -> None:
    result = convert(TF + 'x = (f"{a}"\n     f"{tf.Session()}")\n')
    kinds = {d.kind for d in result.diagnostics}
    assert [call.outcome for call in result.listed] == list(kinds)


def test_the_rules_with_findings_are_named() -> None:
    (call,) = convert(TF + "s = tf.Session()\n").listed
    assert call.codes == ("NPU101",)


def test_the_counts_are_those_of_the_list() -> None:
    result = convert(TF + "tf.Session()\ntf.Session(**kw)\ntf.abs(tf.abs(1))\nd.batch(4)\n")
    assert result.calls == Calls(fine=2, rewritten=1, left=1)
    assert result.calls.total == len(result.listed)


def test_in_a_notebook_places_are_those_of_the_cell() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["import tensorflow as tf\n", "\n", "tf.abs(1)"]},
    ]
    result = Converter(list_calls=True).convert(json.dumps({"cells": cells}).encode(), "a.ipynb")
    assert [(call.cell, call.line, call.col) for call in result.listed] == [(2, 3, 1)]


def test_nothing_is_listed_unless_asked_for() -> None:
    result = Converter(Settings()).convert((TF + "tf.abs(1)\n").encode())
    assert result.listed == () and result.calls.total == 1
