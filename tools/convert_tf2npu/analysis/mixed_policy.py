"""Decide if the mixed precision of the NPU can replace a policy of Keras, and find the optimizers that then scale the
loss."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..semantics.model import Call, Where
from ..semantics.tf_types import Type
from ..semantics.value_flow import origins
from ..syntax.expressions import boxed_constant
from ..tf_api.canonical_names import canonical_name
from .opening import must_open_device
from .optimizers import CREATES_OPTIMIZER, creates_keras_optimizer, optimizer_role
from .program_start import first_working_statements

KERAS = tuple("tensorflow.keras.mixed_precision." + path for path in ("", "experimental."))
KERAS_OPTIMIZERS = frozenset(home + "LossScaleOptimizer" for home in KERAS)
_POLICY = frozenset(home + "Policy" for home in KERAS) | {"tensorflow.keras.mixed_precision.DTypePolicy"}
# The names of optimizers in strings.
_NAMED = {name.lower(): name for name in ("Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "RMSprop", "SGD")}
_OF_POLICIES = (b".compile(", b"mixed_precision", b"dtype_policy")


class Unscaled(NamedTuple):
    """An optimizer in a call of compile, for which Keras would scale the loss because of the policy.

    Attributes:
        node: the expression.
        written: what makes the optimizer, if the expression is a string; else empty.
    """

    node: ast.expr
    written: str


def unscaled_optimizers(context: Context, call: Call) -> list[Unscaled] | None:
    """Return the optimizers that must scale the loss without a policy; None if the policy cannot be replaced.

    Args:
        context: the file.
        call: the call that sets the policy.
    """
    if not _sets_policy_before_work(context, call):
        return None
    called = set(context.called_names.values())
    if not KERAS_OPTIMIZERS.isdisjoint(called):
        return []  # the script scales its loss itself
    compiling = list(_compile_calls(context))
    if not compiling:
        return [] if "tensorflow.GradientTape" in called and not _is_policy_used_elsewhere(context) else None
    if context.distributed or _is_policy_used_elsewhere(context):
        return None
    optimizers = [_unscaled_optimizer(context, compile_call) for compile_call in compiling]
    known = [optimizer for optimizer in optimizers if optimizer is not None]
    return known if len(known) == len(optimizers) else None


def _sets_policy_before_work(context: Context, call: Call) -> bool:
    """Return True if a call sets mixed_float16 in a statement before the work of a program, which opens the device."""
    statement = context.names.parents.get(call.node)
    if not isinstance(statement, ast.Expr) or not must_open_device(context):
        return False
    if len(call.node.args) != 1 or not _is_float16(context, call.node.args[0], call.where):
        return False
    parents = context.names.parents
    return any(
        parents.get(statement) is parents.get(first) and statement.lineno < first.lineno
        for first in first_working_statements(context)
    )


def _is_float16(context: Context, policy: ast.expr, where: Where) -> bool:
    """Return True if a value is certainly the policy mixed_float16, and no layer is given it."""
    if boxed_constant(policy) == ("mixed_float16",):
        return True
    if isinstance(policy, ast.Name):
        reads = [node for node, _ in context.names.reads if node.id == policy.id and node is not policy]
        if not all(isinstance(context.names.parents.get(node), ast.Attribute) for node in reads):
            return False
    values = [origin.node for origin in origins(policy, where, context.names)]
    return bool(values) and all(
        isinstance(node, ast.Call)
        and context.called_names.get(node) in _POLICY
        and len(node.args) == 1
        and boxed_constant(node.args[0]) == ("mixed_float16",)
        for node in values
    )


def _is_policy_used_elsewhere(context: Context) -> bool:
    """Return True if another file of the program may compile a model or ask for the policy."""
    names = context.names
    others = names.imported_files | names.importing_files
    return any(word in names.project.raw(other) for other in others for word in _OF_POLICIES)


def _compile_calls(context: Context) -> Iterator[Call]:
    """Yield the calls that may compile a Keras model."""
    for call in context.names.calls:
        function = call.node.func
        if isinstance(function, ast.Attribute) and function.attr == "compile" and call.node not in context.called_names:
            if context.types.type_of(function.value, call.where) in (None, Type.MODEL):
                yield call


def _unscaled_optimizer(context: Context, call: Call) -> Unscaled | None:
    """Return the optimizer of a call of compile; None if it is not known to be a Keras optimizer."""
    given = [keyword.value for keyword in call.node.keywords if keyword.arg == "optimizer"] or call.node.args[:1]
    if len(given) != 1 or isinstance(given[0], ast.Starred):
        return None
    value = boxed_constant(given[0])
    if value is not None:
        keras = _local_name_of_keras(context)
        maker = _NAMED.get(value[0].lower()) if isinstance(value[0], str) else None
        return Unscaled(given[0], f"{keras}.optimizers.{maker}()") if keras and maker else None
    sources = origins(given[0], call.where, context.names)
    is_known = bool(sources) and all(
        isinstance(origin.node, ast.Call)
        and optimizer_role(origin.node, origin.where, origin.names) == CREATES_OPTIMIZER
        and creates_keras_optimizer(origin.node, origin.where, origin.names)
        for origin in sources
    )
    return Unscaled(given[0], "") if is_known else None


def _local_name_of_keras(context: Context) -> str:
    """Return the name under which a file has tf.keras; "" if it has none."""
    for name, bindings in context.names.module.bindings.items():
        targets = {canonical_name(b.target) if b.kind == "import" else "" for b in bindings}
        if targets in ({"tensorflow"}, {"tensorflow.keras"}):
            return name + ".keras" * (targets == {"tensorflow"})
    return ""
