"""Infinite constants in the model.

Operators of Atlas training products do not support Inf or NaN as input. Use a large finite number, for example in a
mask that hides elements from a softmax. The largest number of float16 is 65504.

Reported::

    import numpy as np
    import tensorflow as tf

    scores = tf.where(mask, scores, tf.fill(tf.shape(scores), -np.inf))

Reported::

    import tensorflow as tf

    best = tf.Variable(float('inf'))

Untouched::

    import tensorflow as tf

    scores = tf.where(mask, scores, tf.fill(tf.shape(scores), -1e4))

Untouched::

    import numpy as np
    import tensorflow as tf

    best = np.inf
    if loss < best:
        saver.save(sess, FLAGS.checkpoint)

Untouched::

    import numpy as np
    import tensorflow as tf

    best = tf.keras.callbacks.EarlyStopping(baseline=np.inf)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...analysis.preamble import FLAGS
from ...semantics.model import Where
from ...syntax.expressions import boxed_constant, values_of
from ..base import Context, Finding

CODE = "NPU209"
_NAMES = frozenset(
    {
        "numpy.inf",
        "numpy.Inf",
        "numpy.infty",
        "numpy.NINF",
        "numpy.nan",
        "numpy.NaN",
        "math.inf",
        "math.nan",
        "numpy.core.inf",
    }
)
# What runs on the host, where Inf means "without a limit" or "no value yet".
_ON_HOST = (
    "tensorflow.contrib.slim.evaluation.",
    "tensorflow.contrib.training.",
    "tensorflow.estimator.",
    "tensorflow.keras.callbacks.",
    "tensorflow.train.",
)
_SKIPPED = (*FLAGS, *_ON_HOST)
_WORDS = frozenset({"inf", "-inf", "+inf", "infinity", "-infinity", "nan"})


def check_file(context: Context) -> Iterator[Finding]:
    text = context.source.text
    if "inf" not in text and "nan" not in text and "NaN" not in text and "Inf" not in text:
        return
    called = context.called_names
    for call in context.names.calls:
        name = called.get(call.node, "")
        if not name.startswith("tensorflow.") or name.startswith(_SKIPPED):
            continue
        for value in values_of(call.node):
            while isinstance(value, ast.UnaryOp):
                value = value.operand
            if _is_infinite(context, value, call.where) and runs_on_npu(context, call.node):
                yield Finding(
                    value,
                    "Inf and NaN are unsupported as operator inputs. Use a large finite number, such as -1e4 in a mask",
                )


def _is_infinite(context: Context, node: ast.AST, where: Where) -> bool:
    if isinstance(node, ast.Attribute):
        return context.resolve(node, where) in _NAMES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float" and node.args:
        value = boxed_constant(node.args[0])
        return bool(value) and str(value[0] if value else "").lower() in _WORDS
    return False
