"""Tests for GPUs that choose the data format or the precision.

TensorFlow finds no GPU on a host with NPUs, and is not built with CUDA there. A script that asks for one then takes
the branch for the CPU, also on the NPU: channels last in place of channels first, float32 in place of half precision.
Both run, but not as the author of the script meant them to on an accelerator.

* Data format: set the value for GPUs, with the script's flag if there is one. Measure a few steps with both formats.
* Precision: choose the mixed precision of the NPU, ``precision_mode='allow_mix_precision'``
  (``npu.global_options().precision_mode`` in TensorFlow 2), instead of a policy.

Reported::

    import tensorflow as tf

    data_format = 'channels_first' if tf.test.is_built_with_cuda() else 'channels_last'

Reported::

    import tensorflow as tf

    if not tf.test.is_gpu_available():
        layout = 'NHWC'
    else:
        layout = 'NCHW'

Reported::

    import tensorflow as tf

    gpus = tf.config.list_physical_devices('GPU')
    policy = 'mixed_float16' if len(gpus) > 0 else 'float32'

Untouched::

    import tensorflow as tf

    device = '/gpu:0' if tf.test.is_gpu_available() else '/cpu:0'

Untouched::

    import tensorflow as tf

    if tf.test.is_gpu_available():
        print('trains on a GPU')
    data_format = 'channels_first'
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.command_line_flags import flags_read_by
from ...analysis.device_placement import is_in_test
from ...analysis.gpu_tests import ASKING, is_test_for_gpu, is_test_for_missing_gpu
from ...syntax.expressions import constant_or, last_name
from ..base import Context, Finding, Message

CODE = "NPU219"
_FORMATS = ("channels_first", "NCHW")
_HALF = ("mixed_float16", "float16", "fp16")


def check_file(context: Context) -> Iterator[Finding]:
    text = context.source.text
    if ASKING.isdisjoint(context.called_names.values()) or not any(word in text for word in _FORMATS + _HALF):
        return
    for node in ast.walk(context.names.tree):
        if isinstance(node, (ast.If, ast.IfExp)) and not is_in_test(context, node):
            yield from _findings_of_choice(context, node)


def _findings_of_choice(context: Context, node: ast.If | ast.IfExp) -> Iterator[Finding]:
    where = context.names.place(node) if isinstance(node, ast.IfExp) else context.names.places[node]
    tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    branches = [set(_literals_of_branch(node.body)), set(_literals_of_branch(node.orelse))]
    if any(is_test_for_missing_gpu(context, test, where) for test in tests):
        branches.reverse()
    elif not any(is_test_for_gpu(context, test, where) for test in tests):
        return
    words = [word for word in _FORMATS + _HALF if word in branches[0] and word not in branches[1]]
    if not words:
        return
    if words[0] in _FORMATS:
        fix = _fix_of_data_format(context, node, words[0])
        yield Finding(node, "the NPU is no GPU, so '{0}' is not chosen here. {1}", words[0], fix)
    else:
        yield Finding(
            node, "the NPU is no GPU, so float32 is chosen here. Set precision_mode='allow_mix_precision' for the NPU"
        )


def _fix_of_data_format(context: Context, node: ast.AST, word: str) -> str:
    """Return how to force the data format: by the flag without which the script asks for a GPU, or in the code."""
    tests = [p.test for p in context.names.ancestors(node) if isinstance(p, ast.If)]
    flags = flags_read_by(
        context, [test for test in tests if "None" in ast.dump(test) or isinstance(test, ast.UnaryOp)]
    )
    return Message("Run with {0}={1}", flags.pop(), word) if len(flags) == 1 else Message("Set it to '{0}'", word)


def _literals_of_branch(branch: ast.expr | list[ast.stmt]) -> Iterator[object]:
    """Yield the literals and the names of types that the statements of a branch use themselves."""
    for part in [branch] if isinstance(branch, ast.expr) else branch:
        if isinstance(part, (ast.expr, ast.Assign, ast.Expr, ast.Return)):
            for node in ast.walk(part):
                value = constant_or(node, last_name(node))
                if not (isinstance(part, ast.Expr) and value in _HALF):  # NPU116 reports the call of a policy
                    yield value
