"""Replace gelu with the NPU operator.

The rule recognizes gelu by its formula, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), in any notation and under any
name. The docstring and the comments of a gelu function stay.

The rule reports the erf form of gelu, which is another function with a difference of up to 5e-4. Use
``npu_unary_ops.gelu`` if this difference is acceptable.

In programs of TensorFlow 2 the rule reports all forms and converts none. There the gelu of the NPU, ``npu.ops.gelu``,
computes x / (1 + exp(-1.702 x)) in functions and models and another form in eager code. It differs from the tanh and the
erf form by up to 0.021, and the vendor has no gradient for the tanh form in TensorFlow 2. Try it in a training of your
model before you use it.

Before::

    import numpy as np
    import tensorflow as tf

    def activation(x):
        \"\"\"The smooth relu of the paper.\"\"\"
        # the cumulative distribution, approximated
        cdf = 0.5 * (1.0 + tf.tanh(
            (np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3)))))
        return x * cdf

After::

    import numpy as np
    import tensorflow as tf
    from npu_shim.npu_init import *

    def activation(x):
        \"\"\"The smooth relu of the paper.\"\"\"
        # the cumulative distribution, approximated
        return npu_unary_ops.gelu(x)

Before::

    import math
    from tensorflow import tanh

    gelu = lambda z: 0.5 * z * (1 + tanh(0.7978845608 * z * (1 + 0.044715 * z * z)))
    C = math.sqrt(2 / math.pi)

    class Block:
        def act(self, h, name=None):
            return h * 0.5 * (1 + tanh(C * (h + 0.044715 * h ** 3)))

After::

    import math
    from tensorflow import tanh
    from npu_shim.npu_init import *

    gelu = lambda z: npu_unary_ops.gelu(z)
    C = math.sqrt(2 / math.pi)

    class Block:
        def act(self, h, name=None):
            return npu_unary_ops.gelu(h)

Before::

    import numpy as np
    import tensorflow as tf

    def block(x, units):
        h = tf.layers.dense(x, units)
        h = 0.5 * h * (1 + tf.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * tf.pow(h, 3))))
        return x + h

    def scoped(x):
        with tf.name_scope('gelu'):
            cdf = 0.5 * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
            return x * cdf

After::

    import numpy as np
    import tensorflow as tf
    from npu_shim.npu_init import *

    def block(x, units):
        h = tf.layers.dense(x, units)
        h = npu_unary_ops.gelu(h)
        return x + h

    def scoped(x):
        with tf.name_scope('gelu'):
            return npu_unary_ops.gelu(x)

Before::

    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    hidden = tf.nn.gelu(hidden, approximate=True)

After::

    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    from npu_shim.npu_init import *
    hidden = npu_unary_ops.gelu(hidden)

Untouched::

    import tensorflow as tf

    @tf.function
    def layer(x):
        return tf.nn.gelu(x, approximate=True)

Untouched::

    import tensorflow as tf

    def gelu(x):
        return 0.5 * x * (1.0 + tf.erf(x / tf.sqrt(2.0)))

Untouched::

    import tensorflow as tf

    def gelu(x):
        return x * tf.sigmoid(1.702 * x)

Untouched::

    import numpy as np

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))

Untouched::

    import tensorflow as tf

    hidden = tf.keras.layers.Dense(512, activation='gelu')(hidden)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.gelu_formula import (
    argument_name,
    body_without_docstring,
    gelu_form_of_expression,
    gelu_form_of_function,
)
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call, Function
from ...semantics.signatures import bind_arguments
from ...syntax.expressions import boxed_constant
from ...syntax.source import Edit
from ..base import Change, Context, Finding

CODE = "NPU108"
DELIBERATE = "rounds gelu differently"
ROUNDS = True
_OF_TENSORFLOW = frozenset({"tensorflow.nn.gelu", "tensorflow.keras.activations.gelu"})
# The functions in the formula. The rule examines each function that calls one of them.
CALLS = _OF_TENSORFLOW | {"tensorflow.tanh", "tensorflow.sigmoid", "tensorflow.erf", "tensorflow.math.erf"}
_COMMENT = re.compile(r"[ \t]*(#[^\r\n]*)")
_LAYERS = ("tensorflow.keras.layers.", "tensorflow.layers.")
_ACTIVATION = "tensorflow.keras.layers.Activation"
_ERF = "erf form of gelu. Use {0} (tanh form) if a difference of up to 5e-4 is acceptable"
_OPERATOR = "npu_unary_ops.gelu"
_FAST = "the NPU has a faster gelu. Use {0} (import npu_shim.npu_device as npu) if a difference of up to 0.021 is acceptable"
_DONE = "gelu replaced with the NPU operator"


def check_file(context: Context) -> Iterator[Finding]:
    """Report an activation given by the name gelu, for which Keras takes the erf form."""
    if "gelu" not in context.source.text:
        return
    for call in context.names.calls:
        given = [(keyword.value, "activation=") for keyword in call.node.keywords if keyword.arg == "activation"]
        layer = context.resolve(call.node.func, call.where) or ""
        if layer == _ACTIVATION:
            given += [(value, "") for value in call.node.args[:1]]
        for value, before in given if layer.startswith(_LAYERS) else ():
            if boxed_constant(value) == ("gelu",) or context.resolve(value, call.where) in _OF_TENSORFLOW:
                yield _gelu_finding(context, value, before)


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if name in _OF_TENSORFLOW:
        yield from _check_gelu_of_tensorflow(context, call.node)
        return
    around = next((f for f in context.names.ancestors(call.node) if isinstance(f, (ast.FunctionDef, ast.Lambda))), None)
    function = next((f for f in context.names.functions if f.node is around), None)
    form = gelu_form_of_function(function, context.names) if function else None
    if function and form == "gelu" and not is_tf2_program(context):
        yield _change_of_gelu_function(context, function)
    elif function and form:
        yield _gelu_finding(context, function.node)
    else:
        yield from _convert_formula_in_expression(context, call)


def _check_gelu_of_tensorflow(context: Context, node: ast.Call) -> Iterator[Change | Finding]:
    """Convert or report a gelu of TensorFlow by its argument ``approximate``."""
    bound = bind_arguments(node, ("features", "approximate", "name"))
    approximate = boxed_constant(bound.args.get("approximate"))
    if bound.hidden or "approximate" in bound.args and approximate is None or not node.args:
        if is_tf2_program(context):
            yield _gelu_finding(context, node)
        else:
            yield Finding(
                node, "the form of this gelu is not visible. For approximate=True write npu_unary_ops.gelu(x)"
            )
    elif approximate and approximate[0] and not is_tf2_program(context):
        yield Change(
            node,
            _DONE,
            (
                Edit(
                    context.source.start(node),
                    context.source.end(node),
                    f"npu_unary_ops.gelu({context.source.segment(node.args[0])})",
                ),
            ),
            ("npu_unary_ops",),
        )
    else:
        yield _gelu_finding(context, node)


def _gelu_finding(context: Context, node: ast.AST, before: str = "") -> Finding:
    """Return the finding for a form of gelu that the NPU computes in another one."""
    template, operator = (_FAST, "npu.ops.gelu") if is_tf2_program(context) else (_ERF, _OPERATOR)
    return Finding(node, template, before + operator)


def _change_of_gelu_function(context: Context, function: Function) -> Change:
    source = context.source
    body = body_without_docstring(function.node)
    call = f"npu_unary_ops.gelu({argument_name(function, context.names)})"
    start, end = source.start(body[0]), source.end(body[-1])
    if not isinstance(function.node, ast.Lambda):
        call = "return " + call
        indent = source.text[source.line_start(start) : start]
        if not indent.strip():  # otherwise the body is on the line of its def
            call = "".join(c + source.newline + indent for c in _comments_in_body(context, body)) + call
    return Change(function.node, _DONE, (Edit(start, end, call),), ("npu_unary_ops",))


def _convert_formula_in_expression(context: Context, call: Call) -> Iterator[Change | Finding]:
    """Convert or report the formula inside other code."""
    whole: ast.AST = call.node
    for parent in context.names.ancestors(call.node):
        if not (isinstance(parent, ast.BinOp) or isinstance(parent, ast.Call) and parent.func is not whole):
            break
        whole = parent
        for part in ast.walk(whole):
            if not isinstance(part, (ast.Name, ast.Attribute)):
                continue
            form = gelu_form_of_expression(whole, part, context.names, call.where)
            if form == "gelu" and not is_tf2_program(context):
                new = f"npu_unary_ops.gelu({context.source.segment(part)})"
                yield Change(
                    whole,
                    _DONE,
                    (Edit(context.source.start(whole), context.source.end(whole), new),),
                    ("npu_unary_ops",),
                )
            elif form:
                yield _gelu_finding(context, whole)
            if form:
                return


def _comments_in_body(context: Context, body: list) -> Iterator[str]:
    """Return the comments between and inside the statements of a function."""
    source = context.source
    for number in range(source.first_and_last_line(body[0])[0], source.first_and_last_line(body[-1])[1]):
        comment = _COMMENT.search(source.line(number))
        if comment:
            yield comment.group(1)
