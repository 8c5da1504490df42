"""Find the number of rows of an array that a script loads from Keras or makes with NumPy."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Binding, Where
from ..syntax.expressions import constant, last_part

# The training and the test examples of the datasets of Keras.
_DATASETS = {
    "boston_housing": (404, 102),
    "cifar10": (50000, 10000),
    "cifar100": (50000, 10000),
    "fashion_mnist": (60000, 10000),
    "imdb": (25000, 25000),
    "mnist": (60000, 10000),
    "reuters": (8982, 2246),
}
_LOADERS = {f"tensorflow.keras.datasets.{name}.load_data": rows for name, rows in _DATASETS.items()}
_SHAPED = frozenset("numpy." + name for name in ("zeros", "ones", "empty", "random.random", "random.random_sample"))
_DIMENSIONS = frozenset({"numpy.random.rand", "numpy.random.randn"})
# Functions and methods whose result has the rows of their argument or object.
_KEEPS = frozenset(
    {
        "numpy.array",
        "numpy.asarray",
        "numpy.expand_dims",
        "tensorflow.keras.utils.to_categorical",
        "tensorflow.one_hot",
        "tensorflow.keras.preprocessing.sequence.pad_sequences",
    }
)
_METHODS = frozenset({"astype", "copy"})


def rows_of(context: Context, node: ast.AST | None, where: Where) -> int | None:
    """Return the number of rows of an array, or None if the script does not show it."""
    return _rows(context, node, where, 0)


def _rows(context: Context, node: ast.AST | None, where: Where, depth: int) -> int | None:
    if node is None or depth > 20:
        return None
    if isinstance(node, ast.Name):
        bindings = context.names.lookup(node.id, where) or []
        found = {_bound(context, binding, depth + 1) for binding in bindings}
        return found.pop() if len(found) == 1 else None
    if isinstance(node, ast.BinOp) and constant(node.right) is not None:
        return _rows(context, node.left, where, depth + 1)
    if not isinstance(node, ast.Call):
        return None
    name = context.resolve(node.func, where) or ""
    if name in _KEEPS and node.args:
        return _rows(context, node.args[0], where, depth + 1)
    if name in _SHAPED and node.args:
        shape = node.args[0]
        first = shape.elts[0] if isinstance(shape, (ast.Tuple, ast.List)) and shape.elts else shape
        return _number(first)
    if name in _DIMENSIONS and node.args:
        return _number(node.args[0])
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return _rows(context, node.func.value, where, depth + 1)
    return None


def _bound(context: Context, binding: Binding, depth: int) -> int | None:
    if binding.kind == "value":
        return _rows(context, binding.node, binding.where, depth)
    if binding.kind != "part" or not isinstance(binding.node, ast.Call):
        return None
    loaded = _LOADERS.get(context.resolve(binding.node.func, binding.where) or "")
    if loaded is None or any(keyword.arg == "test_split" for keyword in binding.node.keywords):
        return None
    which = {"0": 0, "1": 1}.get(binding.target.partition(".")[0])
    return None if which is None or not last_part(binding.target) else loaded[which]


def _number(node: ast.AST) -> int | None:
    value = constant(node)
    return value[0] if value and isinstance(value[0], int) else None
