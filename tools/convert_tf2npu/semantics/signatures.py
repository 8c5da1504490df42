"""The parameters of the TensorFlow functions whose calls rules rewrite, and the binding of arguments to them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ..syntax.expressions import is_none
from ..tf_api.name_tables import PARAMETERS, SESSION_METHOD_PARAMETERS
from .tf_types import Type

RUN_CONFIG = PARAMETERS["tensorflow.estimator.RunConfig"]
# The parameters that NPURunConfig has too; the others have no meaning on the NPU.
NPU_RUN_CONFIG = frozenset(RUN_CONFIG[:9])
ESTIMATOR = ("model_fn", "model_dir", "config", "params", "warm_start_from")
DROPOUT_V1 = ("x", "keep_prob", "noise_shape", "seed", "name", "rate")
DROPOUT_V2 = ("x", "rate", "noise_shape", "seed", "name")
BUCKET_BY_LENGTH = PARAMETERS["tensorflow.data.experimental.bucket_by_sequence_length"]
LAYERS_DROPOUT = ("inputs", "rate", "noise_shape", "seed", "training", "name")


# Arguments whose parameter name cannot be written; the last one is new in Python 3.8.
_NAMELESS = (ast.Starred, ast.GeneratorExp, getattr(ast, "NamedExpr", ast.Starred))


class Bound(NamedTuple):
    """The arguments of a call by parameter name.

    Attributes:
        args: the value of each name.
        positional: the names of the positional arguments.
        keywords: the ``ast.keyword`` of each keyword argument.
        hidden: True if ``*args``, ``**kwargs``, a generator or ``x := 1`` may contain more arguments.
        unknown: a keyword or surplus argument that is not in the signature.
    """

    args: dict[str, ast.expr]
    positional: tuple[str, ...]
    keywords: dict[str, ast.keyword]
    hidden: bool
    unknown: str | None

    def is_given(self, name: str) -> bool:
        """Return True if an argument is given and is not the constant None."""
        value = self.args.get(name)
        return value is not None and not is_none(value)


def session_method_parameters(owner: object, method: str) -> tuple[str, ...]:
    """Return the parameters of a method that makes a session; () for other methods.

    Args:
        owner: the type of the object.
        method: the name of the method.
    """
    return SESSION_METHOD_PARAMETERS.get(f"{owner.value}.{method}", ()) if isinstance(owner, Type) else ()


def bind_arguments(call: ast.Call, parameters: tuple[str, ...]) -> Bound:
    """Bind the arguments of a call as Python would.

    Args:
        call: the call.
        parameters: the names of the callee's parameters, in their order.
    """
    args: dict[str, ast.expr] = {}
    positional = []
    keywords: dict[str, ast.keyword] = {}
    hidden = False
    unknown: str | None = None
    for index, value in enumerate(call.args):
        if isinstance(value, _NAMELESS):
            hidden = True
            break
        if index >= len(parameters):
            unknown = f"argument {index + 1}"
            break
        args[parameters[index]] = value
        positional.append(parameters[index])
    for keyword in call.keywords:
        if keyword.arg is None:
            hidden = True
            continue
        if keyword.arg not in parameters:
            unknown = keyword.arg
        args[keyword.arg] = keyword.value
        keywords[keyword.arg] = keyword
    return Bound(args, tuple(positional), keywords, hidden, unknown)
