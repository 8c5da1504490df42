"""Constants that underflow in float16.

The smallest positive number of float16 is 6e-8. Constants below half of it become zero in mixed precision: in
``tf.log(x + 1e-8)`` the 1e-8 vanishes, and the result is minus infinity. Use 1e-4 or more, or cast to float32 first.
The rule reports only files that mention float16 or mixed precision.

Reported::

    import tensorflow as tf

    EPSILON = 1e-12
    x = tf.cast(x, tf.float16)
    loss = -tf.reduce_mean(y * tf.log(x + 1e-8))
    scale = tf.rsqrt(variance + EPSILON)

Untouched::

    import tensorflow as tf

    loss = -tf.reduce_mean(y * tf.log(x + 1e-8))

Untouched::

    import tensorflow as tf

    x = tf.cast(x, tf.float16)
    loss = -tf.reduce_mean(y * tf.log(x + 1e-4))
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import runs_on_npu
from ...semantics.model import Call, Where
from ...syntax.expressions import constant, last_part
from ..base import Context, Finding, Result

CODE = "NPU227"
CALLS = frozenset(
    "tensorflow." + name
    for name in """log math.log sqrt rsqrt math.rsqrt math.reciprocal
reciprocal clip_by_value maximum math.maximum keras.backend.log keras.backend.sqrt
keras.backend.clip""".split()
)
_BOUNDS = {"clip_by_value": 1, "clip": 1, "maximum": 1}  # the position of the lower bound
_ZERO_BELOW = 2.0**-25
_FLOAT16 = ("float16", "mix_precision", "mixed_precision", "mixed_float", "tf.half")


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    short = last_part(name)
    values = call.node.args[:1]
    if short in _BOUNDS:
        values = call.node.args[:2] if short == "maximum" else call.node.args[1:2]
        small = next((v for v in values if _is_tiny(context, v, call.where)), None)
    else:
        small = next(
            (
                side
                for v in values
                if isinstance(v, ast.BinOp) and isinstance(v.op, ast.Add)
                for side in (v.left, v.right)
                if _is_tiny(context, side, call.where)
            ),
            None,
        )
    if small is not None and _mentions_float16(context.source.text) and runs_on_npu(context, call.node):
        yield Finding(
            call.node,
            "{0} becomes zero in float16 and does not protect {1}. Use 1e-4 or more, or cast to float32 first",
            context.source.segment(small),
            short,
        )


def _mentions_float16(text: str) -> bool:
    return any(word in text for word in _FLOAT16) or re.search(r"\bfp16", text) is not None


def _is_tiny(context: Context, node: ast.AST, where: Where) -> bool:
    if isinstance(node, ast.Name):
        bindings = context.names.lookup(node.id, where) or []
        return bool(bindings) and all(
            b.kind == "value"
            and b.node is not None
            and not isinstance(b.node, ast.Name)
            and _is_tiny(context, b.node, b.where)
            for b in bindings
        )
    value = constant(node)
    return value is not None and isinstance(value[0], float) and 0.0 < value[0] < _ZERO_BELOW
