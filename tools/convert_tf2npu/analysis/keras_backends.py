"""Find the backends that a script chooses for Keras."""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..syntax.expressions import constant

_VARIABLE = "KERAS_BACKEND"
_SETTERS = frozenset({"os.environ.setdefault", "os.putenv", "os.environ.__setitem__"})
_SWITCHES = frozenset(
    f"{keras}.{module}.set_backend" for keras in ("keras", "tensorflow.keras") for module in ("config", "backend")
)
_OTHERS = frozenset({"jax", "torch", "numpy", "openvino", "theano", "cntk", "mxnet", "plaidml.keras.backend"})


def other_backends(context: Context) -> list[tuple[ast.AST, str]]:
    """Return the statements and calls that choose a backend other than TensorFlow, each with the backend."""
    text = context.source.text
    if _VARIABLE not in text and "set_backend" not in text:
        return []
    found = ((node, (constant(value) or ("",))[0]) for node, value in _chosen(context))
    return [(node, str(backend)) for node, backend in found if backend in _OTHERS]


def _chosen(context: Context) -> Iterator[tuple[ast.AST, ast.expr]]:
    names = context.names
    for statement, where in names.places.items():
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Subscript)
            and names.resolve(statement.targets[0].value, where) == "os.environ"
            and _key(statement.targets[0]) == _VARIABLE
        ):
            yield statement, statement.value
    for call in names.calls:
        name = names.resolve(call.node.func, call.where)
        if name in _SETTERS and len(call.node.args) > 1 and constant(call.node.args[0]) == (_VARIABLE,):
            yield call.node, call.node.args[1]
        elif name in _SWITCHES and call.node.args:
            yield call.node, call.node.args[0]


def _key(target: ast.Subscript) -> object:
    key: ast.AST = (
        getattr(target.slice, "value", target.slice) if not isinstance(target.slice, ast.Constant) else target.slice
    )
    return (constant(key) or ("",))[0]
