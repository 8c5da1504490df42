"""Loops over time, with facts about their steps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.convert.observed import converted_with_facts

LOOP: dict[str, Any] = {"in": "graph", "dimensions": [(8, 20, 4)], "draws": False}
ROWS: dict[str, Any] = {"rank": 3, "rows": 8, "last": 2, "place": "graph", "dtype": "float32"}
HEAD = (
    "import tensorflow as tf\nfrom npu_shim.npu_init import npu_rnn\n\n\nclass Net:\n    def build(self, cell, x, n):\n"
)


def converted(line: str, loop: Any = LOOP, rows: Any = ROWS) -> str:
    """Return the lines of a method converted with facts about its loop and the inputs."""
    result = converted_with_facts(f"{HEAD}        {line}", loop, rows, select=("NPU207",))
    assert [(d.kind, d.runs) for d in result.diagnostics] == ([("change", 2)] if result.new else [("finding", None)])
    text = (result.new or f"{HEAD}        {line}".encode()).decode()
    assert text.startswith(HEAD)
    return text[len(HEAD) :].replace("        ", "")


TIME_FIRST = {**LOOP, "dimensions": [(20, None, 4), (1, 8, 4)]}
UNROLLED = [
    (
        "self.y, self.z = tf.nn.dynamic_rnn(cell, self.x, dtype=n)",
        "self.y, self.z = npu_rnn.npu_dynamic_rnn(cell, tf.transpose(self.x, [1, 0, 2]), dtype=n)\n"
        "self.y = tf.transpose(self.y, [1, 0, 2])\n",
        LOOP,
    ),
    (
        "y, _ = tf.nn.dynamic_rnn(inputs=x + 1, cell=cell, scope=n, swap_memory=True)  # why\n",
        "y, _ = npu_rnn.npu_dynamic_rnn(inputs=tf.transpose(x + 1, [1, 0, 2]), cell=cell, scope=n)  # why\n"
        "y = tf.transpose(y, [1, 0, 2])\n",
        LOOP,
    ),
    (
        "_, y = tf.nn.dynamic_rnn(cell, x, n, None, n, None, False, False, n)\n",
        "_, y = npu_rnn.npu_dynamic_rnn(cell, tf.transpose(x, [1, 0, 2]), sequence_length=n, initial_state=None, "
        "dtype=n, scope=n)\n",
        LOOP,
    ),
    (
        "return tf.nn.dynamic_rnn(cell, x, dtype=n, time_major=True)",
        "return npu_rnn.npu_dynamic_rnn(cell, x, dtype=n)",
        TIME_FIRST,
    ),
]


@pytest.mark.parametrize("before, after, loop", UNROLLED)
def test_few_static_steps_are_unrolled(before: str, after: str, loop: Any) -> None:
    assert converted(before, loop) == after


LINE = "y, z = tf.nn.dynamic_rnn(cell, x, dtype=n)"
OTHERS = [
    "y = tf.nn.dynamic_rnn(cell, x, dtype=n)",
    "return tf.nn.dynamic_rnn(cell, x, dtype=n)",
    "ys[0], z = tf.nn.dynamic_rnn(cell, x, dtype=n)",
    "y, z = w = tf.nn.dynamic_rnn(cell, x, dtype=n)",
    "(a, b), z = tf.nn.dynamic_rnn(cell, x, dtype=n)",
    "if n: y, z = tf.nn.dynamic_rnn(cell, x, dtype=n)",
    "y, z = tf.nn.dynamic_rnn(cell, x, dtype=n); return y",
    "y, z = tf.nn.dynamic_rnn(cell, x, dtype=n, time_major=n)",
    "y, z = tf.nn.dynamic_rnn(cell, x, **n)",
]


@pytest.mark.parametrize("line", OTHERS)
def test_other_forms_stay(line: str) -> None:
    assert converted(line) == line


@pytest.mark.parametrize(
    "loop",
    [
        {},
        {**LOOP, "in": "function"},
        {**LOOP, "in": "eager"},
        {**LOOP, "draws": True},
        {**LOOP, "draws": [False, True]},
        {"in": "graph", "draws": False},
        {**LOOP, "dimensions": [(8, None, 4)]},
        {**LOOP, "dimensions": [(8, 20, 4), (8, None, 4)]},
        {**LOOP, "dimensions": [(8, 129, 4)]},
        {**LOOP, "dimensions": [(8, "20", 4)]},
        {**LOOP, "dimensions": [(8, 20)]},
        {**LOOP, "dimensions": [None]},
        {**LOOP, "dimensions": [20]},
    ],
)
def test_loops_of_other_steps_stay(loop: Any) -> None:
    assert converted(LINE, loop) == LINE


@pytest.mark.parametrize("rows", [{}, {**ROWS, "rank": 4}, {**ROWS, "rank": [3, 4]}])
def test_inputs_of_other_ranks_stay(rows: Any) -> None:
    assert converted(LINE, LOOP, rows) == LINE


@pytest.mark.parametrize(
    "more",
    [
        "class Cell(tf.nn.rnn_cell.RNNCell):\n    pass\n",
        "class Wrapped(\n    tf.nn.rnn_cell.DropoutWrapper\n):\n    pass\n",
    ],
)
def test_loops_stay_if_the_program_has_cells_of_its_own(more: str) -> None:
    text = f"{HEAD}        {LINE}\n\n\n{more}"
    result = converted_with_facts(text, LOOP, ROWS, select=("NPU207",))
    assert result.new is None and [d.kind for d in result.diagnostics] == ["finding"]


def test_loops_over_several_inputs_stay() -> None:
    text = f"{HEAD}        x = (n, n)\n        {LINE}"
    result = converted_with_facts(text, LOOP, ROWS, select=("NPU207",))
    assert result.new is None and [d.kind for d in result.diagnostics] == ["finding"]
