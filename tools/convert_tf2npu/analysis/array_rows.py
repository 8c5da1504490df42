"""Find the number of rows of an array that a script loads from Keras, makes with NumPy, or writes as a list."""

from __future__ import annotations

import ast

from ..project.context import Context
from ..semantics.model import Binding, Where
from ..semantics.value_flow import origins
from ..syntax.expressions import boxed_constant, constant_or, indices_of, last_part

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
_SHAPED = frozenset(
    "numpy." + name for name in ("zeros", "ones", "empty", "random.random", "random.random_sample")
).union("tensorflow." + name for name in ("zeros", "ones", "random.normal", "random.uniform"))
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
# Methods of a dataset that keep the number of its elements.
_SAME_ROWS = frozenset({"cache", "enumerate", "map", "prefetch", "shuffle", "with_options"})


def row_count_of_array(context: Context, node: ast.AST | None, where: Where) -> int | None:
    """Return the number of rows of an array, or None if the script does not show it."""
    return _count_rows(context, node, where, 0)


def _count_rows(context: Context, node: ast.AST | None, where: Where, depth: int) -> int | None:
    if node is None or depth > 20:
        return None
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, where) or []
        numbers = {_count_rows_of_binding(context, binding, depth + 1) for binding in bindings}
        return numbers.pop() if len(numbers) == 1 else None
    if isinstance(node, ast.BinOp) and boxed_constant(node.right) is not None:
        return _count_rows(context, node.left, where, depth + 1)
    if isinstance(node, ast.Subscript):
        return _count_rows_of_slice(context, node, where, depth + 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        return None if any(isinstance(row, ast.Starred) for row in node.elts) else len(node.elts)
    if not isinstance(node, ast.Call):
        return None
    name = context.resolve(node.func, where) or ""
    if name in _KEEPS and node.args:
        return _count_rows(context, node.args[0], where, depth + 1)
    if name in _SHAPED and node.args:
        shape = node.args[0]
        first = shape.elts[0] if isinstance(shape, (ast.Tuple, ast.List)) and shape.elts else shape
        return integer_of(context, first, where)
    if name in _DIMENSIONS and node.args:
        return integer_of(context, node.args[0], where)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return _count_rows(context, node.func.value, where, depth + 1)
    return None


def element_count_of_dataset(context: Context, node: ast.AST, where: Where, depth: int = 20) -> int | None:
    """Return the number of elements of a dataset of arrays, or None if the script does not show it."""
    if isinstance(node, ast.Name):
        bindings = context.names.bindings_of_name(node.id, where) or []
        numbers = {
            element_count_of_dataset(context, b.node, b.where, depth - 1)
            if b.kind == "value" and b.node and depth
            else None
            for b in bindings
        }
        return numbers.pop() if len(numbers) == 1 else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    method, value = node.func.attr, node.args[0] if node.args else None
    if method == "from_tensor_slices" and value is not None:
        return _row_count_of_structure(context, value, where)
    if method not in _SAME_ROWS and method not in ("repeat", "skip", "take"):
        return None
    rows = element_count_of_dataset(context, node.func.value, where, depth)
    if rows is None or method in _SAME_ROWS:
        return rows
    number = integer_of(context, value, where) if value is not None else None
    if number is None or number < 0:
        return None
    return {"repeat": rows * number, "skip": max(rows - number, 0), "take": min(rows, number)}[method]


def _row_count_of_structure(context: Context, value: ast.AST, where: Where) -> int | None:
    """Return the number of rows of the arrays in a structure, of which one is known."""
    values = value.values if isinstance(value, ast.Dict) else value.elts if isinstance(value, ast.Tuple) else [value]
    known = {
        _row_count_of_structure(context, part, where) if part is not value else row_count_of_array(context, part, where)
        for part in values
    }
    known.discard(None)
    return known.pop() if len(known) == 1 else None


def integer_of(context: Context, node: ast.AST, where: Where) -> int | None:
    """Return the integer that an expression certainly is: a literal, or a name of one."""
    values = {constant_or(origin.node, None) for origin in origins(node, where, context.names)}
    value = values.pop() if len(values) == 1 else None
    return value if isinstance(value, int) else None


def _count_rows_of_slice(context: Context, node: ast.Subscript, where: Where, depth: int) -> int | None:
    """Return the number of rows in ``x[:64]``. Without a length of ``x`` the slice needs a length of its own."""
    first = indices_of(node)[0]
    if not isinstance(first, ast.Slice):
        return None
    whole = _count_rows(context, node.value, where, depth)
    written = (first.lower, first.upper, first.step)
    bounds = [integer_of(context, bound, where) if bound else None for bound in written]
    if any(bound is None and node is not None for bound, node in zip(bounds, written)) or bounds[2] == 0:
        return None
    if whole is None and (bounds[1] is None or any((bound or 0) < 0 for bound in bounds)):
        return None
    return len(range(*slice(*bounds).indices(bounds[1] if whole is None else whole)))  # type: ignore[arg-type]


def _count_rows_of_binding(context: Context, binding: Binding, depth: int) -> int | None:
    if binding.kind == "value":
        return _count_rows(context, binding.node, binding.where, depth)
    if binding.kind != "part" or not isinstance(binding.node, ast.Call):
        return None
    loaded = _LOADERS.get(context.resolve(binding.node.func, binding.where) or "")
    if loaded is None or any(keyword.arg == "test_split" for keyword in binding.node.keywords):
        return None
    which = {"0": 0, "1": 1}.get(binding.target.partition(".")[0])
    return None if which is None or not last_part(binding.target) else loaded[which]
