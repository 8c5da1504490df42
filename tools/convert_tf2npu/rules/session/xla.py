"""Disable XLA.

The NPU compiles the graph itself, so XLA must not compile parts of it. ``npu_config_proto`` disables XLA in session
configurations. The rule disables it in all other places. It reports a call whose arguments are hidden behind ``*`` or
``**``. Pass the argument that disables XLA there.

Before::

    import tensorflow as tf

    tf.config.optimizer.set_jit(True)
    with tf.xla.experimental.jit_scope():
        y = f(x)

    @tf.function(jit_compile=True)
    def step(x):
        return x + 1

    def build(model: tf.keras.Model):
        model.compile('adam', 'mse', jit_compile=True)

After::

    import tensorflow as tf

    tf.config.optimizer.set_jit(False)
    with tf.xla.experimental.jit_scope(compile_ops=False):
        y = f(x)

    @tf.function(jit_compile=False)
    def step(x):
        return x + 1

    def build(model: tf.keras.Model):
        model.compile('adam', 'mse', jit_compile=False)

Untouched::

    import jax
    import tensorflow as tf

    f = jax.function(jit_compile=True)
    tf.config.optimizer.set_jit(False)

Untouched::

    import tensorflow as tf

    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...rewrite.call_edits import add_argument, rename
from ...semantics.model import Call
from ...semantics.signatures import bind
from ...semantics.tf_types import Type
from ...syntax.expressions import constant
from ..base import Change, Context, Finding, Result

CODE = "NPU112"
# For each function: its positional parameters, the argument that enables XLA, and the default of this argument.
_SWITCHES: dict[str, tuple[tuple[str, ...], str, bool]] = {
    "tensorflow.config.optimizer.set_jit": (("enabled",), "enabled", False),
    "tensorflow.xla.experimental.jit_scope": (("compile_ops", "separate_compiled_gradients"), "compile_ops", True),
    "tensorflow.contrib.compiler.jit.experimental_jit_scope": (
        ("compile_ops", "separate_compiled_gradients"),
        "compile_ops",
        True,
    ),
    "tensorflow.function": ((), "jit_compile", False),
}
CALLS = frozenset(_SWITCHES)
METHODS = frozenset({"compile"})


def check_method(context: Context, call: Call) -> Iterator[Result]:
    """Disable XLA in ``compile`` of a Keras model."""
    assert isinstance(call.node.func, ast.Attribute)
    value = next((keyword.value for keyword in call.node.keywords if keyword.arg == "jit_compile"), None)
    if constant(value) == (True,) and context.types.of(call.node.func.value, call.where) == Type.MODEL:
        assert value is not None
        yield Change(call.node, "XLA disabled", (rename(context.source, value, "False"),))


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    signature, switch, default = _SWITCHES[name or ""]
    bound = bind(call.node, signature)
    if switch == "jit_compile" and "experimental_compile" in bound.args:
        switch = "experimental_compile"
    value = bound.args.get(switch)
    if value is None:
        if not default:
            return
        edit = None if bound.hidden else add_argument(context.source, call.node, switch + "=False")
        if edit is None:
            yield Finding(call.node, f"XLA must be off on the NPU. Pass {switch}=False")
            return
    elif constant(value) in ((False,), (None,)):
        return
    else:
        edit = rename(context.source, value, "False")
    yield Change(call.node, "XLA disabled", (edit,))
