"""Inf and NaN checks that gate updates.

In saturation mode, the default of Atlas training products, an overflow gives the largest number instead of Inf, and
no NaN follows. ``is_finite`` is always true, so a gate on it never closes and overflowed gradients are applied. The
rule reports one finding for each function.

* Remove the gate. Clip with ``use_norm=tf.global_norm(grads)`` and apply the gradients unconditionally.
* Let ``NPULossScaleOptimizer`` skip overflowed steps. It reads the overflow flag of the device.
* Outside of updates, prevent such values: clip the argument of ``tf.log``, add a constant to a divisor. Or check on
  the host.

With facts of ``npu-shim observe``, there is no finding for checks that only the input pipeline makes.

Reported::

    import tensorflow as tf

    def train(optimizer, grads, variables):
        finite = tf.reduce_all([tf.reduce_all(tf.is_finite(g)) for g in grads])
        clipped, _ = tf.clip_by_global_norm(
            grads, 1.0, use_norm=tf.cond(finite, lambda: tf.global_norm(grads), lambda: 1.0))
        return optimizer.apply_gradients(zip(clipped, variables))

Reported::

    import tensorflow as tf

    x = tf.where(tf.math.is_nan(x), tf.zeros_like(x), x)

Untouched::

    import numpy as np
    import tensorflow as tf

    assert np.isfinite(loss_value)

Untouched::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(x).filter(lambda v: tf.is_finite(v))
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import enclosing_function
from ...rewrite.seen_findings import questions_if_first
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding

CODE = "NPU222"
CALLS = calls_of_kind("finite")
_UPDATES = re.compile(r"apply_gradients|clip_by_global_norm|minimize\s*\(")


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    asks = questions_if_first(context, CODE, call, CALLS, enclosing_function(context, call.node))
    if not asks:
        return
    short = last_part(name)
    constantly = "true" if short == "is_finite" else "false"
    if any(
        isinstance(p, ast.FunctionDef) and _UPDATES.search(context.source.segment(p))
        for p in context.names.ancestors(call.node)
    ):
        yield Finding(
            call.node,
            "{0} is always {1} in saturation mode. Remove the gate, clip with "
            "use_norm=tf.global_norm(grads) and let NPULossScaleOptimizer skip overflowed steps",
            short,
            constantly,
            asks=asks,
        )
    else:
        yield Finding(
            call.node,
            "{0} is always {1} in saturation mode. Prevent such values: clip the argument of log, "
            "add a constant to a divisor. Or check on the host",
            short,
            constantly,
            asks=asks,
        )
