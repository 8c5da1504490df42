"""Find out where the optimizers come from that compute and apply gradients."""

from __future__ import annotations

import ast
from typing import Iterator

from ..project.context import Context
from ..semantics.model import Call, Where
from ..semantics.signatures import bind_arguments
from ..semantics.tf_types import Type
from ..semantics.value_flow import Origin, origins
from ..syntax.expressions import last_name
from .device_placement import is_function_of_other_library
from .optimizers import ProjectClass, is_optimizer_class, is_optimizer_subclass, optimizer_role

MPI = "this optimizer averages its gradients with MPI. Start the ranks with mpirun"
_COMPUTES = frozenset({"minimize", "compute_gradients"})
_ARGUMENTS = frozenset({"global_step", "var_list", "gate_gradients", "colocate_gradients_with_ops"})


def is_optimizer_known(context: Context, call: Call) -> bool:
    """Return True if the file or project creates the optimizer, or has the method, that applies gradients."""
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    if context.names.definition(function, call.where) is not None or _is_method_of_base_optimizer(
        context, function, call.where
    ):
        return True
    optimizer = function.value
    values = [
        (optimizer, call.where),
        *_optimizers_compiled_with_model(context, optimizer),
        *_keyword_arguments_passed_as(context, optimizer, call.where),
    ]
    return any(
        isinstance(origin.node, ast.Call) and optimizer_role(origin.node, origin.where, origin.names) is not None
        for value, where in values
        for origin in origins(value, where, context.names, follows_methods=True)
    )


def calls_of_unknown_optimizers(context: Context) -> Iterator[Call]:
    """Yield the first call of each optimizer of unknown origin that computes gradients in a graph.

    Optimizers without a value in the file, such as a name of a star import, are not unknown but not there.
    """
    names, seen = context.names, set()
    for call in names.calls:
        function = call.node.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr in _COMPUTES
            and context.resolve(function, call.where) is None
            and context.types.type_of(function.value, call.where) in (None, Type.OPTIMIZER, Type.KERAS_OPTIMIZER)
            and not is_function_of_other_library(function, call.where, names)
            and not is_optimizer_known(context, call)
            and not _is_in_optimizer_class(context, call)
            and any(
                _may_be_optimizer_computing_gradients(origin, call.node)
                for origin in origins(function.value, call.where, names, follows_methods=True)
            )
        ):
            key = ast.dump(function.value), call.where.scope.node
            if key not in seen:
                seen.add(key)
                yield call


def _is_method_of_base_optimizer(context: Context, function: ast.Attribute, where: Where) -> bool:
    """Return True for a method of the base of an optimizer, as in ``super().apply_gradients``."""
    base = function.value
    is_super = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"
    return is_super or is_optimizer_class(context.resolve(base, where) or "")


def _is_in_optimizer_class(context: Context, call: Call) -> bool:
    """Return True for code of an optimizer, which may ask another one for its gradients."""
    around = [parent for parent in context.names.ancestors(call.node) if isinstance(parent, ast.ClassDef)]
    return any(is_optimizer_subclass(ProjectClass(owner, context.names)) for owner in around)


def _may_be_optimizer_computing_gradients(origin: Origin, call: ast.Call) -> bool:
    """Return True if an origin of unknown value may be an optimizer of TensorFlow that computes gradients in a call."""
    node = origin.node
    if isinstance(node, ast.Name):
        return bool(origin.names.bindings_of_name(node.id, origin.where))
    if not isinstance(node, ast.Call) or not origin.resolve():
        return True
    # Of a library. Other libraries have objects with a method minimize, too, but not with these arguments.
    return last_name(call.func) == "compute_gradients" or any(k.arg in _ARGUMENTS for k in call.keywords)


def _optimizers_compiled_with_model(context: Context, optimizer: ast.expr) -> Iterator[tuple[ast.expr, Where]]:
    """Yield the optimizers with which the file compiles a model, of which an expression is the attribute optimizer."""
    if not isinstance(optimizer, ast.Attribute) or optimizer.attr != "optimizer":
        return
    model = ast.dump(optimizer.value)
    for call in context.names.calls:
        function = call.node.func
        if isinstance(function, ast.Attribute) and function.attr == "compile" and ast.dump(function.value) == model:
            given = bind_arguments(call.node, ("optimizer",)).args.get("optimizer")
            if given is not None:
                yield given, call.where


def _keyword_arguments_passed_as(
    context: Context, optimizer: ast.expr, where: Where
) -> Iterator[tuple[ast.expr, Where]]:
    """Yield the keyword arguments of a class that takes any, of which an expression may be the attribute."""
    owner = context.names.owner_class(optimizer.value, where) if isinstance(optimizer, ast.Attribute) else None
    if owner is None or owner.names.attribute_bindings(owner.node, optimizer.attr):  # type: ignore[attr-defined]
        return
    for call in context.names.calls:
        given = [k.value for k in call.node.keywords if k.arg == optimizer.attr]  # type: ignore[attr-defined]
        definition = context.names.definition(call.node.func, call.where) if given else None
        if definition is not None and definition.node is owner.node:
            yield given[0], call.where
