"""Keras with a backend other than TensorFlow.

Keras runs on the NPU through TensorFlow only. The rule reports scripts that choose another backend. Choose
``'tensorflow'`` before the import of Keras, and replace what only the other backend has.

Reported::

    import os

    os.environ['KERAS_BACKEND'] = 'jax'
    import keras

Reported::

    import keras

    keras.config.set_backend('torch')

Untouched::

    import os

    os.environ['KERAS_BACKEND'] = 'tensorflow'
    from tensorflow import keras

Untouched::

    import os

    os.environ['MPL_BACKEND'] = 'jax'
    from tensorflow import keras
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...syntax.expressions import constant
from ..base import Context, Finding, Result

CODE = "NPU277"
_VARIABLE = "KERAS_BACKEND"
_SETTERS = frozenset({"os.environ.setdefault", "os.putenv", "os.environ.__setitem__"})
_OTHERS = frozenset({"jax", "torch", "numpy", "openvino", "theano", "cntk", "mxnet", "plaidml.keras.backend"})


def check_file(context: Context) -> Iterator[Result]:
    names = context.names
    text = context.source.text
    if _VARIABLE in text:
        for statement, where in names.places.items():
            if (
                isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Subscript)
                and names.resolve(statement.targets[0].value, where) == "os.environ"
                and _key(statement.targets[0]) == _VARIABLE
            ):
                yield from _check(context, statement, statement.value)
    if _VARIABLE in text or "set_backend" in text:
        for call in names.calls:
            name = names.resolve(call.node.func, call.where)
            if name in _SETTERS and len(call.node.args) > 1 and constant(call.node.args[0]) == (_VARIABLE,):
                yield from _check(context, call.node, call.node.args[1])
            elif name in ("keras.config.set_backend", "keras.backend.set_backend") and call.node.args:
                yield from _check(context, call.node, call.node.args[0])


def _check(context: Context, node: ast.stmt | ast.expr, value: ast.expr) -> Iterator[Result]:
    chosen = (constant(value) or ("",))[0]
    if chosen in _OTHERS and not in_test(context, node):
        yield Finding(node, f"Keras with the backend {chosen} does not run on the NPU. Write 'tensorflow'")


def _key(target: ast.Subscript) -> object:
    key: ast.AST = (
        getattr(target.slice, "value", target.slice) if not isinstance(target.slice, ast.Constant) else target.slice
    )
    return (constant(key) or ("",))[0]
