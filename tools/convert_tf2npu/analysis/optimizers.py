"""Find calls that create optimizers, wrap them, or average their gradients over ranks."""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple, Tuple

from ..semantics.call_sites import default_of_parameter
from ..semantics.model import Binding, Where
from ..semantics.module_index import ModuleIndex, Names
from ..semantics.signatures import bind_arguments
from ..semantics.tf_types import Type, type_of_result, type_of_subclass
from ..semantics.value_flow import Origin, origins
from ..syntax.expressions import boxed_constant, is_none, last_part, values_of
from ..tf_api.canonical_names import canonical_name
from .mpi_collectives import AVERAGES, calls_mpi

NPU = "npu_shim.npu_init."
WRAPPER = "npu_distributed_optimizer_wrapper"
# Wrappers that average the gradients of their optimizer.
_AVERAGING_WRAPPERS = frozenset(
    NPU + name
    for name in """npu_distributed_optimizer_wrapper NPUDistributedOptimizer
npu_tf_optimizer npu_keras_optimizer KerasDistributeOptimizer""".split()
) | {
    "horovod.DistributedOptimizer",
    "npu_shim.npu_device.distribute.distributed_optimizer",
    NPU + "npu_distributed_keras_optimizer_wrapper",
}
_AVERAGING_WORDS = re.compile(
    rb"npu_distributed_optimizer_wrapper|NPUDistributedOptimizer|npu_tf_optimizer|"
    rb"npu_keras_optimizer|distributed_optimizer|npu_distributed_keras_optimizer_wrapper|KerasDistributeOptimizer|DistributedOptimizer|NPUOptimizer"
)
# Wrappers that get the gradients from their optimizer, so that averaging there is enough.
_WRAPPERS = (
    frozenset(
        "tensorflow." + name
        for name in """
train.SyncReplicasOptimizer contrib.opt.MovingAverageOptimizer contrib.opt.DropStaleGradientOptimizer
contrib.opt.ElasticAverageOptimizer contrib.opt.ModelAverageOptimizer contrib.opt.AGNOptimizer
contrib.opt.VariableClippingOptimizer contrib.opt.MultitaskOptimizerWrapper
contrib.mixed_precision.LossScaleOptimizer train.experimental.MixedPrecisionLossScaleOptimizer
train.experimental.enable_mixed_precision_graph_rewrite mixed_precision.enable_mixed_precision_graph_rewrite
contrib.tpu.CrossShardOptimizer tpu.CrossShardOptimizer keras.mixed_precision.LossScaleOptimizer
keras.mixed_precision.experimental.LossScaleOptimizer contrib.estimator.clip_gradients_by_norm
contrib.estimator.TowerOptimizer""".split()
    )
    | frozenset("tensorflow_addons.optimizers." + name for name in ("MovingAverage", "Lookahead", "SWA"))
    | {
        NPU + "NPULossScaleOptimizer",
        NPU + "NPUOptimizer",
        "npu_shim.npu_device.train.optimizer.NpuLossScaleOptimizer",
    }
)
_MORE = (
    "tensorflow.contrib.optimizer_v2.",
    "tensorflow.contrib.kfac.optimizer.",
    "tensorflow_addons.optimizers.",
    "keras.optimizers.",
    "tensorflow.optimizers.",
    "tensorflow.keras.optimizers.legacy.",
    "tensorflow.keras.optimizers.experimental.",
)
_HOMES = frozenset({"tensorflow.keras.optimizers.", *_MORE})
_NO_CLASSES = frozenset({"Optimizer", "OptimizerV2"})
_FACTORIES = frozenset({"tensorflow.keras.optimizers.get", "tensorflow.keras.optimizers.deserialize"})
_ASKED = frozenset({"compute_gradients", "minimize", "get_gradients", "get_updates", "_compute_gradients"})
_AVERAGES_IN = _ASKED | {"apply_gradients", "apply"}

CREATES_OPTIMIZER, WRAPS_OPTIMIZER = "creates an optimizer", "wraps one"
AVERAGES_GRADIENTS = "averages the gradients of one"
Key = Tuple[str, int]


class ProjectClass(NamedTuple):
    """A class of the project."""

    node: ast.ClassDef
    names: Names


def optimizer_role(call: ast.Call, where: Where, names: Names) -> str | None:
    """Return the role of a call, one of the three above; None if it has none or an unknown one."""
    name = names.resolved_name(call.func, where)
    if name is not None and not name.is_definition:
        return _role_of_name(canonical_name(name.dotted) if not name.path else name.text, call)
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):  # contrib.opt().Adam(...)
        homes = {origin.resolve() for origin in origins(call.func.value, where, names)}
        roles = {_role_of_name(canonical_name(f"{home}.{call.func.attr}"), call) for home in homes if home} - {None}
    else:
        roles = {_role_of_callee(origin, call) for origin in _origins_of_callee(call.func, where, names)}
    return roles.pop() if len(roles) == 1 else None


def _origins_of_callee(function: ast.expr, where: Where, names: Names) -> Iterator[Origin]:
    """Yield the origins of a called expression. A parameter of unknown value is what its default is, if it has one."""
    for origin in origins(function, where, names):
        parameter = _parameter_named_by(origin)
        if parameter is None:
            yield origin
            continue
        default = default_of_parameter(parameter)
        if default is not None and not is_none(default):
            place = origin.names.places[parameter.where.scope.node]
            yield from origins(default, place, origin.names)


def _parameter_named_by(origin: Origin) -> Binding | None:
    """Return the parameter of a function of the project that an origin names, if it names one."""
    parameter = origin.names.only_binding(origin.node, origin.where, "arg")
    is_of_function = parameter is not None and isinstance(parameter.where.scope.node, ast.FunctionDef)
    return parameter if is_of_function else None


def creates_keras_optimizer(call: ast.Call, where: Where, names: Names) -> bool:
    """Return True if a call that has a role creates a Keras optimizer, not one of tf.train."""
    called = {origin.resolve() for origin in origins(call.func, where, names)} | {names.resolve(call.func, where)}
    return not any(
        name is not None and (type_of_result(name) == Type.OPTIMIZER or name.startswith(("tensorflow.train.", NPU)))
        for name in called
    )


def _role_of_name(name: str, call: ast.Call) -> str | None:
    if name in _AVERAGING_WRAPPERS:
        return AVERAGES_GRADIENTS
    if name == NPU + "NPUOptimizer" and boxed_constant(
        bind_arguments(call, ("opt", "loss_scale_manager", "is_distributed")).args.get("is_distributed")
    ) == (True,):
        return AVERAGES_GRADIENTS
    if name in _WRAPPERS:
        return WRAPS_OPTIMIZER
    if name in _FACTORIES or is_optimizer_class(name):
        return CREATES_OPTIMIZER
    return None


def is_optimizer_class(name: str) -> bool:
    """Return True if a canonical name is a class of optimizers that can be created."""
    last = last_part(name)
    if last in _NO_CLASSES or name in _WRAPPERS or name in _AVERAGING_WRAPPERS:
        return False
    return (
        type_of_result(name) in (Type.OPTIMIZER, Type.KERAS_OPTIMIZER)
        or name.startswith(_MORE)
        and last[:1].isupper()
        and ".schedules." not in name
    )


def _role_of_callee(origin: Origin, call: ast.Call, enclosing_partials: frozenset[ast.AST] = frozenset()) -> str | None:
    """Return the role of a call by the origin of the called expression.

    Args:
        origin: the origin.
        call: the call.
        enclosing_partials: the calls of functools.partial around the origin, which may be made of themselves in a loop.
    """
    if isinstance(origin.node, ast.ClassDef):
        its_class = ProjectClass(origin.node, origin.names)
        if not is_optimizer_subclass(its_class):
            return None
        return (
            AVERAGES_GRADIENTS
            if averages_with_mpi(its_class)
            else WRAPS_OPTIMIZER
            if wraps_other_optimizer(its_class)
            else CREATES_OPTIMIZER
        )
    name = origin.resolve()
    if isinstance(origin.node, ast.Call):
        if _gets_optimizer_class(origin.node, origin):
            return CREATES_OPTIMIZER
        if name != "functools.partial" or not origin.node.args:
            return None
        enclosing_partials |= {origin.node}
        inner = origins(origin.node.args[0], origin.where, origin.names)
        roles = {
            _role_of_callee(callee, call, enclosing_partials)
            for callee in inner
            if callee.node not in enclosing_partials
        }
        return roles.pop() if len(roles) == 1 else None
    return _role_of_name(name, call) if name else None


def _gets_optimizer_class(call: ast.Call, origin: Origin) -> bool:
    """Return True for ``getattr(tf.keras.optimizers, name)``."""
    return (
        getattr(call.func, "id", "") == "getattr"
        and bool(call.args)
        and f"{origin.names.resolve(call.args[0], origin.where)}." in _HOMES
    )


def is_optimizer_subclass(its_class: ProjectClass) -> bool:
    """Return True if a class of the project derives from an optimizer of TensorFlow."""
    return any(
        type_of_subclass(name) in (Type.OPTIMIZER, Type.KERAS_OPTIMIZER) or is_optimizer_class(name)
        for name in its_class.names.outside_ancestors(its_class.node)
    )


def wraps_other_optimizer(its_class: ProjectClass) -> bool:
    """Return True if an optimizer of the project gets its gradients from another optimizer that it holds."""
    for name in _ASKED:
        for binding, names in its_class.names.attribute_bindings(its_class.node, name):
            for node in ast.walk(binding.node) if isinstance(binding.node, ast.FunctionDef) else ():
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr in _ASKED
                    and isinstance(node.value, ast.Attribute)
                    and not names.resolve(node.value, names.place(node))
                ):
                    return True  # self._optimizer.compute_gradients, not that of a base class
    return False


def averages_with_mpi(its_class: ProjectClass) -> bool:
    """Return True if a class of the project averages gradients over the ranks itself, with MPI."""
    return any(
        binding.node is not None and calls_mpi(binding.node, names, AVERAGES)
        for name in _AVERAGES_IN
        for binding, names in its_class.names.attribute_bindings(its_class.node, name)
    )


def creates_mpi_optimizer(call: ast.Call, where: Where, names: Names) -> bool:
    """Return True if a call creates an optimizer of such a class."""
    is_of_project = names.class_definition(call.func, where) is not None
    return is_of_project and optimizer_role(call, where, names) == AVERAGES_GRADIENTS


def wrapped_optimizers(names: Names) -> dict[Key, str]:
    """Return the optimizers that must not be wrapped where they are created.

    They are passed to code that averages their gradients, or to an optimizer that does not use their gradients.

    Returns:
        The role of each of them, by the key of its origin.
    """
    return {**names.once(_wrapped_in_file), **names.project.once(_wrapped_in_project)}


def _wrapped_in_project(project: ModuleIndex) -> dict[Key, str]:
    averaged: dict[Key, str] = {}
    for path in project.paths:
        if path.endswith((".py", ".pyw")) and _AVERAGING_WORDS.search(project.raw(path)):
            module = project.module(path)
            if module is not None:
                averaged.update(module.names.once(_wrapped_in_file))
    return averaged


def _wrapped_in_file(names: Names) -> dict[Key, str]:
    taken: dict[Key, str] = {}
    for call in names.calls:
        its_role = optimizer_role(call.node, call.where, names)
        of_project = its_role == CREATES_OPTIMIZER and names.definition(call.node.func, call.where) is not None
        if its_role == AVERAGES_GRADIENTS or of_project:
            _add_optimizers_in_arguments(call.node, call.where, names, taken)
    return taken


def _add_optimizers_in_arguments(call: ast.Call, where: Where, names: Names, roles: dict[Key, str]) -> None:
    """Record the optimizers that a call takes, and those inside them."""
    for value in values_of(call):
        for origin in origins(value, where, names):
            if isinstance(origin.node, ast.Call) and origin.names.call_key(origin.node) not in roles:
                its_role = optimizer_role(origin.node, origin.where, origin.names)
                if its_role is not None:
                    roles[origin.names.call_key(origin.node)] = its_role
                    _add_optimizers_in_arguments(origin.node, origin.where, origin.names, roles)
