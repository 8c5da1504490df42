"""Find out what a function of one tensor computes by evaluating it.

A formula can be written in many ways. Its values decide if it is the tanh form of gelu. The expression is interpreted
with Python floats, and functions of TensorFlow with those of ``math``. Only arithmetic and some well-known functions
are supported. With anything else the formula is unknown.
"""

from __future__ import annotations

import ast
import math
import operator
from typing import Callable

from ..semantics.model import Function, Where
from ..semantics.module_index import Names
from ..syntax.expressions import boxed_constant, constant_or

_POINTS = (-3.1, -2.0, -1.3, -0.5, -0.01, 0.0, 0.4, 1.0, 1.7, 2.5, 3.3)
# Enough for constants with five digits. The erf form differs by 5e-4, x*sigmoid(1.702x) by 2e-2.
_TOLERANCE = 5e-5
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_TENSOR: dict[str, Callable[..., float]] = {
    "tensorflow.tanh": math.tanh,
    "tensorflow.pow": math.pow,
    "tensorflow.sqrt": math.sqrt,
    "tensorflow.square": lambda v: v * v,
    "tensorflow.multiply": operator.mul,
    "tensorflow.add": operator.add,
    "tensorflow.erf": math.erf,
    "tensorflow.math.erf": math.erf,
    "tensorflow.sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "tensorflow.exp": math.exp,
    "tensorflow.math.exp": math.exp,
    "tensorflow.math.divide": operator.truediv,
    "tensorflow.divide": operator.truediv,
    "tensorflow.subtract": operator.sub,
    "tensorflow.math.subtract": operator.sub,
}
_SCALAR: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "power": math.pow,
    "pow": math.pow,
    "square": lambda v: v * v,
    "float32": float,
    "array": float,
}
_CONSTANT = {module + "." + name: function for module in ("numpy", "math") for name, function in _SCALAR.items()}
_VALUES = {"numpy.pi": math.pi, "math.pi": math.pi}
_SAME = frozenset({"tensorflow.cast", "tensorflow.constant", "tensorflow.identity", "tensorflow.convert_to_tensor"})


_FORMS: dict[str, Callable[[float], float]] = {
    "gelu": lambda x: math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "erf gelu": lambda x: math.erf(x / math.sqrt(2)),
}


class _Unknown(Exception):
    """The formula contains something that is not supported."""


class _Value:
    """A float, and True if it depends on the function's argument."""

    def __init__(self, number: float, tensor: bool) -> None:
        self.number = number
        self.tensor = tensor


def gelu_form_of_function(function: Function, names: Names) -> str | None:
    """Return what a function or lambda computes.

    Returns:
        ``'gelu'`` for x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), ``'erf gelu'`` for
        x/2 (1 + erf(x / sqrt(2))), None for anything else.
    """
    argument = argument_name(function, names)
    body = body_without_docstring(function.node)
    if argument is None or not body:
        return None
    return _gelu_form_computed_by(lambda x: _run_statements(body, argument, x, function, names))


def _gelu_form_computed_by(formula: Callable[[float], _Value]) -> str | None:
    try:
        values = [formula(x) for x in _POINTS]
    except (_Unknown, ValueError, OverflowError, ZeroDivisionError, TypeError, RecursionError):
        return None
    if not all(value.tensor for value in values):
        return None
    for name, inner in _FORMS.items():
        if all(abs(v.number - 0.5 * x * (1 + inner(x))) < _TOLERANCE for x, v in zip(_POINTS, values)):
            return name
    return None


def argument_name(function: Function, names: Names) -> str | None:
    """Return the one required argument of a function, ``self`` not counted, or None."""
    args = function.node.args
    if args.vararg or args.kwarg or args.kwonlyargs or getattr(args, "posonlyargs", []):
        return None
    required = args.args[: len(args.args) - len(args.defaults)]
    if required and isinstance(names.parents.get(function.node), ast.ClassDef) and required[0].arg in ("self", "cls"):
        required = required[1:]
    return required[0].arg if len(required) == 1 else None


def body_without_docstring(node: ast.AST) -> list[ast.AST]:
    """Return the statements of a function without its docstring, or the expression of a lambda."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    body = list(node.body)  # type: ignore[attr-defined]
    if isinstance(body[0], ast.Expr) and isinstance(constant_or(body[0].value, 0), str):
        body = body[1:]
    if len(body) == 1 and isinstance(body[0], ast.With) and not any(item.optional_vars for item in body[0].items):
        return list(body[0].body)
    return body


def gelu_form_of_expression(node: ast.expr, argument: ast.expr, names: Names, where: Where) -> str | None:
    """Return what an expression computes from a part of it.

    Args:
        node: the expression.
        argument: one of the places where the part stands; a name or a dotted name.
        names: of the module.
        where: the place of the expression.

    Returns:
        as :func:`gelu_form_of_function`.
    """
    text = ast.dump(argument)
    return _gelu_form_computed_by(lambda x: _evaluate(node, {text: _Value(x, True)}, names, where))


def _run_statements(body: list[ast.AST], argument: str, x: float, function: Function, names: Names) -> _Value:
    local = {ast.dump(ast.Name(argument, ast.Load())): _Value(x, True)}
    where = Where(function.scope.ref, (), None)
    for statement in body[:-1]:
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, (ast.AnnAssign, ast.AugAssign))
            else []
        )
        value = getattr(statement, "value", None)
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or value is None:
            raise _Unknown
        name = ast.Name(targets[0].id, ast.Load())
        if isinstance(statement, ast.AugAssign):
            value = ast.BinOp(name, statement.op, value)
        try:
            local[ast.dump(name)] = _evaluate(value, local, names, where)
        except _Unknown:
            if not isinstance(value, (ast.Attribute, ast.Name)) and boxed_constant(value) is None:
                raise
            local.pop(ast.dump(name), None)  # dtype = x.dtype is no number; it matters only if it is used
    last = body[-1]
    expression = last.value if isinstance(last, ast.Return) else last
    if not isinstance(expression, ast.expr):
        raise _Unknown
    return _evaluate(expression, local, names, where)


def _evaluate(node: ast.AST, local: dict[str, _Value], names: Names, where: Where) -> _Value:
    value = boxed_constant(node)
    if value is not None:
        if isinstance(value[0], bool) or not isinstance(value[0], (int, float)):
            raise _Unknown
        return _Value(float(value[0]), False)
    if isinstance(node, (ast.Name, ast.Attribute)):
        known = local.get(ast.dump(node))
        if known is not None:
            return known
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _evaluate(node.left, local, names, where)
        right = _evaluate(node.right, local, names, where)
        number = _OPERATORS[type(node.op)](left.number, right.number)
        return _Value(number, left.tensor or right.tensor)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        operand = _evaluate(node.operand, local, names, where)
        return _Value(-operand.number, operand.tensor)
    if isinstance(node, ast.Call):
        return _evaluate_call(node, local, names, where)
    name = names.resolve(node, where)
    if name in _VALUES:
        return _Value(_VALUES[name], False)
    if isinstance(node, ast.Name):
        return _value_of_outer_constant(node, names, where)
    raise _Unknown


def _value_of_outer_constant(node: ast.Name, names: Names, where: Where) -> _Value:
    """Return the value of a constant outside of the function."""
    binding = names.only_binding(node, where, "value")
    if binding is not None and binding.node is not None:
        value = _evaluate(binding.node, {}, names, binding.where)
        if not value.tensor:
            return value
    raise _Unknown


def _evaluate_call(node: ast.Call, local: dict[str, _Value], names: Names, where: Where) -> _Value:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        inner = _evaluate(node.func.value, local, names, where)
        if not inner.tensor:
            return inner
    name = names.resolve(node.func, where) or ""
    if name in _SAME and node.args:
        return _evaluate(node.args[0], local, names, where)
    if any(k.arg not in ("x", "y", "a", "name") for k in node.keywords):
        raise _Unknown
    given = node.args + [k.value for k in node.keywords if k.arg != "name"]
    values = [_evaluate(v, local, names, where) for v in given]
    tensor = any(v.tensor for v in values)
    if name in _TENSOR:
        return _Value(_TENSOR[name](*[v.number for v in values]), tensor)
    if name in _CONSTANT and (not tensor or name == "numpy.power"):
        # of NumPy's functions only power works on a symbolic tensor
        return _Value(_CONSTANT[name](*[v.number for v in values]), tensor)
    raise _Unknown
