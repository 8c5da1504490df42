"""A CrossShardOptimizer is removed, unless a condition around it asks for the TPU."""

from __future__ import annotations

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings

HEAD = "import tensorflow as tf\nfrom tensorflow.contrib.tpu import CrossShardOptimizer\n"
CONVERTER = Converter(Settings(select=("NPU111",)))
LEFT_OUT = {
    "around an optimizer that is made there": (
        'opt = CrossShardOptimizer(tf.train.AdamOptimizer(0.1), "sum")\n',
        "opt = tf.train.AdamOptimizer(0.1)\n",
    ),
    "under a condition of another kind": (
        'if mode == "train":\n    x = 1\n    opt = CrossShardOptimizer(opt)\n',
        'if mode == "train":\n    x = 1\n',
    ),
    "as all of a block": ("if mode:\n    opt = CrossShardOptimizer(opt)\n", "if mode:\n    pass\n"),
    "around what needs parentheses": ("CrossShardOptimizer(a or b).minimize(x)\n", "(a or b).minimize(x)\n"),
    "with a comment": ("opt = CrossShardOptimizer(opt)  # sum\n", "# sum\n"),
    "in another attribute": ("self.opt = CrossShardOptimizer(opt=opt)\n", "self.opt = opt\n"),
}


@pytest.mark.parametrize("text,expected", list(LEFT_OUT.values()), ids=list(LEFT_OUT))
def test_the_wrapper_is_removed(text: str, expected: str) -> None:
    new = CONVERTER.convert((HEAD + text).encode()).new
    assert new is not None and new.decode() == HEAD + expected


@pytest.mark.parametrize(
    "condition", ["FLAGS.use_tpu", "not is_tpu_free", "xla.is_xla_compiled()", 'x and params["TPU"]']
)
def test_a_condition_for_the_tpu_keeps_it(condition: str) -> None:
    result = CONVERTER.convert((HEAD + f"if {condition}:\n    opt = CrossShardOptimizer(opt)\n").encode())
    assert result.new is None and result.diagnostics == ()


def test_hidden_arguments_are_reported() -> None:
    result = CONVERTER.convert((HEAD + "opt = CrossShardOptimizer(**arguments)\n").encode())
    assert result.new is None and [d.kind for d in result.diagnostics] == [FINDING]
