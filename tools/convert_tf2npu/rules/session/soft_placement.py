"""Enable soft device placement.

A graph for the NPU names devices of its own, so TensorFlow must be allowed to place operations on other devices.
``npu_config_proto`` enables soft placement in session configurations. The rule enables it in
``tf.config.set_soft_device_placement``.

Before::

    import tensorflow as tf

    tf.config.set_soft_device_placement(False)

After::

    import tensorflow as tf

    tf.config.set_soft_device_placement(True)

Untouched::

    import tensorflow as tf

    tf.config.set_soft_device_placement(True)
    config = tf.compat.v1.ConfigProto(allow_soft_placement=False)

Untouched::

    import tensorflow as tf

    before = tf.config.get_soft_device_placement()
    try:
        tf.config.set_soft_device_placement(True)
        step()
    finally:
        tf.config.set_soft_device_placement(before)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...rewrite.call_edits import edit_to_rename
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import boxed_constant
from ..base import Change, Context

CODE = "NPU113"
CALLS = frozenset({"tensorflow.config.set_soft_device_placement"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change]:
    value = bind_arguments(call.node, ("enabled",)).args.get("enabled")
    if value is not None and boxed_constant(value) != (True,) and not _restores_setting(context, call, value):
        yield Change(
            call.node,
            "soft device placement enabled",
            (edit_to_rename(context.source, value, "True"),),
        )


def _restores_setting(context: Context, call: Call, value: ast.AST) -> bool:
    """Return True if the value is a setting that the program has read before."""
    if not isinstance(value, ast.Name):
        return False
    bindings = context.names.bindings_of_name(value.id, call.where) or []
    return bool(bindings) and all(
        isinstance(b.node, ast.Call)
        and context.names.resolve(b.node.func, b.where) == "tensorflow.config.get_soft_device_placement"
        for b in bindings
    )
