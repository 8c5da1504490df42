"""Calls that need a TPU.

These functions compile for a TPU, configure it or exchange data between its cores. Calls that run only on a TPU, such
as those under ``if FLAGS.use_tpu`` or in a ``try`` that handles their error, are not reported. The rule reports a flag
``use_tpu`` that is true by default. Mixed precision, which ``bfloat16_scope`` sets on a TPU, is an option of the NPU
session: ``precision_mode_v2``.

Reported::

    import tensorflow as tf

    losses = tf.contrib.tpu.cross_replica_sum(losses)
    step = tf.tpu.rewrite(step_fn)

Reported::

    import tensorflow as tf
    from absl import flags

    flags.DEFINE_bool('use_tpu', True, 'Use a TPU.')

Untouched::

    import tensorflow as tf

    tf.flags.DEFINE_bool('use_tpu', False, 'Use a TPU.')
    if FLAGS.use_tpu:
        losses = tf.contrib.tpu.cross_replica_sum(losses)

Untouched::

    import tensorflow as tf

    try:
        tpu = tf.distribute.cluster_resolver.TPUClusterResolver()
        strategy = tf.distribute.TPUStrategy(tpu)
    except ValueError:
        strategy = tf.distribute.get_strategy()

Untouched::

    import tpu

    step = tpu.rewrite(step_fn)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import boxed_constant, last_part
from ...tf_api.name_tables import calls_of_kind
from ..base import Context, Finding

CODE = "NPU211"
_FLAGS = frozenset(
    f"{home}flags.{name}"
    for home in ("absl.", "tensorflow.", "tensorflow.app.")
    for name in ("DEFINE_bool", "DEFINE_boolean")
)
CALLS = calls_of_kind("tpu") | {"tensorflow.distribute.TPUStrategy"} | _FLAGS
_ADVICE = {
    "bfloat16_scope": "Remove it and set precision_mode_v2='mixed_float16' on the NPU session",
    "cross_replica_sum": "Remove it on one device; use npu_allreduce on several",
    "initialize_system": "Remove it: the NPU session initializes its device",
    "shutdown_system": "Remove it: the NPU session releases its device",
    "TPUStrategy": "Use tf.distribute.get_strategy() on one device",
}


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if name in _FLAGS:
        given = bind_arguments(call.node, ("name", "default")).args
        if [boxed_constant(given.get(argument)) for argument in ("name", "default")] == [("use_tpu",), (True,)]:
            yield Finding(call.node, "the program asks for a TPU by default. Write False")
        return
    if last_part(name) == "TPUStrategy" and context.distributed == "tf_strategy":
        return  # another rule replaces strategies
    child: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if (
            isinstance(parent, (ast.If, ast.IfExp))
            and child is not parent.test
            and "tpu" in context.source.segment(parent.test).lower()
        ):
            return
        if isinstance(parent, ast.Try) and parent.handlers and child in parent.body:
            return
        if isinstance(parent, (ast.FunctionDef, ast.ClassDef)) and "tpu" in parent.name.lower():
            return  # written for a TPU, and called only on one
        child = parent
    short = last_part(name)
    advice = _ADVICE.get(short, "Remove it, or call it only on a TPU")
    yield Finding(call.node, "{0} works on a TPU only. {1}", short, advice)
