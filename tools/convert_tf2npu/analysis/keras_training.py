"""Find the calls that train a Keras model, and the place where the training starts."""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.tf_types import TRAINING_METHODS, Type
from ..syntax.expressions import is_main_guard
from .compiled_models import is_compiled
from .device_placement import is_in_test
from .tensorflow_evidence import trains_as_keras

_SETS_SESSION = frozenset(
    {
        "keras.backend.set_session",  # of the package, with TensorFlow 1
        "tensorflow.keras.backend.set_session",
        "npu_shim.npu_init.set_keras_session_npu_config",
        "npu_shim.npu_init.npu_clear_session",
    }
)


def first_training(context: Context) -> Call | None:
    """Return the first call that trains a Keras model, or None if there is none or the script sets the session."""
    if sets_session(context):
        return None
    for call in _training_calls(context):
        if context.types.type_of(call.node.func.value, call.where) == Type.MODEL:  # type: ignore[attr-defined]
            return call
    return None


def first_possible_training(context: Context) -> Call | None:
    """Return the first training call of an object of unknown type that is compiled or trained as only Keras does."""
    calls_keras = any(name.startswith("tensorflow.keras.") for name in context.called_names.values())
    for call in _training_calls(context):
        model = call.node.func.value  # type: ignore[attr-defined]
        may_be_keras = (
            calls_keras
            and isinstance(model, ast.Name)
            and context.types.type_of(model, call.where) is None
            and is_compiled(context.names, model, call.where)
        )
        if (may_be_keras or trains_as_keras(context.names, call)) and not is_in_test(context, call.node):
            return call
    return None


def sets_session(context: Context) -> bool:
    """Return True if the script sets the Keras session itself."""
    return not _SETS_SESSION.isdisjoint(context.called_names.values())


def body_starting_training(context: Context, training: Call) -> ast.AST | None:
    """Return the function from which the training starts, or the main guard, or the module; None if not unique."""
    names = context.names
    scope = training.where.scope
    seen = set()
    while scope.parent is not None:
        node = scope.node
        if not isinstance(node, ast.FunctionDef) or node in seen or scope.parent is not names.module:
            return None
        seen.add(node)
        callers = [c for c in names.calls if isinstance(c.node.func, ast.Name) and c.node.func.id == node.name]
        if not callers or all(c.where.scope is names.module for c in callers):
            return node
        inside = [c for c in callers if c.where.scope is not names.module]
        if len({id(c.where.scope) for c in inside}) != 1 or len(inside) != len(callers):
            return None
        scope = inside[0].where.scope
    guards = [p for p in names.ancestors(training.node) if is_main_guard(p)]
    return guards[0] if guards else names.tree


def _training_calls(context: Context) -> Iterator[Call]:
    for call in context.names.calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr in TRAINING_METHODS:
            yield call
