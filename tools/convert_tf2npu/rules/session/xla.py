"""Disable XLA.

The NPU compiles the graph itself, so XLA must not compile parts of it. ``npu_config_proto`` disables XLA in session
configurations. The rule disables it in all other places. ``TF_XLA_FLAGS`` overrides these settings, so the rule removes an
assignment that turns automatic compilation on. ``compile`` of Keras models has no ``jit_compile`` in TensorFlow 2.6, so the rule
removes it in programs of TensorFlow 2. It reports such a value in another expression, and a call whose arguments
are hidden behind ``*`` or ``**``. Pass the argument that disables XLA there.

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
        model.compile('adam', 'mse')

Before::

    import os
    import tensorflow as tf

    os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit'
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'

After::

    import os
    import tensorflow as tf

    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '2'

Reported::

    import os
    import tensorflow as tf

    os.environ.update({'TF_XLA_FLAGS': '--tf_xla_auto_jit=1'})

Untouched::

    import os
    import tensorflow as tf

    os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=-1'

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
import re
from typing import Iterator

from ...analysis.keras_backends import SETTERS
from ...analysis.tensorflow_version import is_tf2_program
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...rewrite.removal import remove_arguments, remove_statements
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type
from ...syntax.expressions import boxed_constant, constant_or
from ..base import Change, Context, Finding, Message

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
_VARIABLE = "TF_XLA_FLAGS"
_AUTOMATIC = re.compile(r"--(?:.* --)?tf_xla_auto_jit=(?!-1\b|0\b)")


def check_file(context: Context) -> Iterator[Change | Finding]:
    """Remove a value of TF_XLA_FLAGS that turns XLA on, or report it where it is part of another statement."""
    if _VARIABLE not in context.source.text or "tf_xla_auto_jit" not in context.source.text:
        return
    names = context.names
    for node in ast.walk(names.tree):
        value = constant_or(node, "")
        if not isinstance(value, str) or not _AUTOMATIC.match(value):
            continue
        statement = next(parent for parent in names.ancestors(node) if isinstance(parent, ast.stmt))
        if not any(_VARIABLE == getattr(p, "arg", constant_or(p, "")) for p in ast.walk(statement)):
            continue
        if _only_sets_flags(context, statement, node):
            edits = remove_statements(context.source, names, [statement])
            yield Change(statement, Message("{0} removed, which turns XLA on", _VARIABLE), tuple(edits))
        else:
            yield Finding(node, "XLA must be off on the NPU. Remove --tf_xla_auto_jit from {0}", _VARIABLE)


def _only_sets_flags(context: Context, statement: ast.stmt, value: ast.AST) -> bool:
    """Return True if a statement does nothing but give TF_XLA_FLAGS a value."""
    where = context.names.places[statement]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (
            statement.value is value
            and isinstance(target, ast.Subscript)
            and context.resolve(target.value, where) == "os.environ"
        )
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and len(statement.value.args) == 2
        and statement.value.args[1] is value
        and context.resolve(statement.value.func, where) in SETTERS
    )


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change]:
    """Disable XLA in ``compile`` of a Keras model."""
    value = next((keyword.value for keyword in call.node.keywords if keyword.arg == "jit_compile"), None)
    if value is None or context.types.type_of(method.value, call.where) != Type.MODEL:
        return
    if boxed_constant(value) in ((True,), (False,), (None,)) and is_tf2_program(context):
        edits = remove_arguments(context.source, call.node, [value])
        yield Change(call.node, "jit_compile removed, which TensorFlow 2.6 lacks", tuple(edits))
    elif boxed_constant(value) == (True,):
        yield Change(call.node, "XLA disabled", (edit_to_rename(context.source, value, "False"),))


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    signature, switch, default = _SWITCHES[name]
    bound = bind_arguments(call.node, signature)
    if switch == "jit_compile" and "experimental_compile" in bound.args:
        switch = "experimental_compile"
    value = bound.args.get(switch)
    if value is None:
        if not default:
            return
        edit = None if bound.hidden else edit_to_add_argument(context.source, call.node, switch + "=False")
        if edit is None:
            yield Finding(call.node, "XLA must be off on the NPU. Pass {0}=False", switch)
            return
    elif boxed_constant(value) in ((False,), (None,)):
        return
    else:
        edit = edit_to_rename(context.source, value, "False")
    yield Change(call.node, "XLA disabled", (edit,))
