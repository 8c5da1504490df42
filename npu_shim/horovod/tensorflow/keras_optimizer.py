"""A Keras optimizer that reduces gradients: Keras of TensorFlow 1.15 to 2.15, and Keras 3."""

from __future__ import annotations

from typing import Iterable

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.tf_keras import built_variables, optimizer_config
from npu_shim._tensorflow.types import (
    DType,
    Gradient,
    GradientTape,
    Optimizer,
    Result,
    Structure,
    Tensor,
    TensorShape,
    Variable,
)
from npu_shim.horovod.tensorflow.gradient_aggregation import LocalGradientAggregation
from npu_shim.horovod.tensorflow.gradient_reduction import GradientReducer, ReductionSettings
from npu_shim.horovod.tensorflow.util import _executing_eagerly
from npu_shim.optimizer.gradient_averaging import GradientAndVariable


def create_distributed_optimizer(
    optimizer: Optimizer,
    name: str | None,
    backward_passes_per_step: int,
    average_aggregated_gradients: bool,
    settings: ReductionSettings,
) -> Optimizer:
    """Return an optimizer of a class made from that of a Keras optimizer, with its configuration.

    The class has the name of the optimizer's own, so that a saved model loads where Horovod is absent.

    Args:
        optimizer: a Keras optimizer.
        name: the name scope of the collectives.
        backward_passes_per_step: how many backward passes each rank sums before the reduction.
        average_aggregated_gradients: True if the sum of several passes is divided by their number.
        settings: how gradients are reduced.
    """
    base = type(optimizer)
    if getattr(base, "is_horovod", False):
        raise ValueError(f"{optimizer!r} is a hvd.DistributedOptimizer already. Wrap an optimizer once.")
    full_name = name or f"Distributed{base.__name__}"
    GradientReducer(full_name, settings)  # arguments are checked here, and not when a model is loaded

    def __init__(self: Optimizer, *args: object, **kwargs: object) -> None:
        base.__init__(self, *args, **kwargs)
        reducer = GradientReducer(full_name, settings)
        aggregation = None
        if backward_passes_per_step > 1:
            dense = settings.sparse_as_dense
            aggregation = LocalGradientAggregation(
                backward_passes_per_step, reducer, dense, average_aggregated_gradients, _create_variable
            )
        object.__setattr__(self, "_reducer", reducer)
        object.__setattr__(self, "_agg_helper", aggregation)

    def register_local_var(self: Optimizer, var: Variable) -> None:
        self._reducer.register_local(var)

    members: dict[str, object] = {
        "__init__": __init__,
        "__module__": "horovod._keras",
        "is_horovod": True,
        "register_local_var": register_local_var,
        "_allreduce": _allreduce,
    }
    members.update(_keras3_members(base) if hasattr(base, "apply") else _keras2_members(base))
    subclass: Result = type(base.__name__, (base,), members)
    return subclass.from_config(optimizer_config(optimizer))


def _allreduce(self: Optimizer, gradients: Iterable[Gradient], variables: Iterable[Variable]) -> list[Gradient]:
    """Return reduced gradients; several passes are summed first."""
    reduce = self._reducer.reduce if self._agg_helper is None else self._agg_helper.compute_gradients
    return reduce(list(gradients), list(variables))


def _keras2_members(base: type) -> dict[str, object]:
    """Return the methods for optimizers whose minimize() and get_gradients() compute gradients."""
    has_grad_loss = hasattr(base, "_compute_gradients")  # the optimizers before Keras 2.11, and the legacy ones
    compute = getattr(base, "_compute_gradients" if has_grad_loss else "compute_gradients", None)

    def _compute_gradients(
        self: Optimizer, loss: Tensor, var_list: Structure, grad_loss: Tensor | None = None, tape: GradientTape = None
    ) -> list[GradientAndVariable]:
        given: dict[str, Tensor | GradientTape] = {"grad_loss": grad_loss} if has_grad_loss else {}
        if tape is not None:
            given["tape"] = tape
        pairs = compute(self, loss, var_list, **given)  # type: ignore[misc]
        variables = [variable for _, variable in pairs]
        return list(zip(self._allreduce([gradient for gradient, _ in pairs], variables), variables))

    def compute_gradients(
        self: Optimizer, loss: Tensor, var_list: Structure, tape: GradientTape = None
    ) -> list[GradientAndVariable]:
        return _compute_gradients(self, loss, var_list, tape=tape)

    def get_gradients(self: Optimizer, loss: Tensor, params: list[Variable]) -> list[Gradient]:
        return self._allreduce(base.get_gradients(self, loss, params), params)  # type: ignore[attr-defined]

    def apply_gradients(
        self: Optimizer, grads_and_vars: Iterable[GradientAndVariable], *args: object, **kwargs: object
    ) -> Result:
        pairs = list(grads_and_vars)
        if self._agg_helper is None or self._agg_helper.counter is None:
            return base.apply_gradients(self, pairs, *args, **kwargs)  # type: ignore[attr-defined]
        return self._agg_helper.apply_gradients(
            lambda: base.apply_gradients(self, pairs, *args, **kwargs),  # type: ignore[attr-defined]
            lambda: self.iterations.assign_add(1),
            [gradient for gradient, _ in pairs],
        )

    members: dict[str, object] = {
        "_compute_gradients": _compute_gradients,
        "compute_gradients": compute_gradients,
        "get_gradients": get_gradients,
        "apply_gradients": apply_gradients,
    }
    if tf.__version__.startswith("1."):
        members["variables"] = lambda self: self.get_weights()  # arrays, as Horovod returns for TensorFlow 1
    return members


def _keras3_members(base: type) -> dict[str, object]:
    """Return the method through which every gradient of Keras 3 goes."""

    def apply(
        self: Optimizer, grads: Iterable[Gradient], trainable_variables: Iterable[Variable] | None = None
    ) -> Result:
        variables = built_variables(self) if trainable_variables is None else list(trainable_variables)
        reduced = self._allreduce(grads, variables)
        if self._agg_helper is None:
            return base.apply(self, reduced, trainable_variables)  # type: ignore[attr-defined]
        if not self.built:
            with tf.init_scope():
                self.build(variables)

        def count() -> None:
            self.iterations.assign_add(1)  # which returns a tensor in some versions

        return self._agg_helper.apply_gradients(
            lambda: base.apply(self, reduced, trainable_variables),  # type: ignore[attr-defined]
            count,
            reduced,
        )

    return {"apply": apply}


def _create_variable(shape: TensorShape, dtype: DType, name: str) -> Variable:
    """Return a variable of a function or of eager mode; in a graph one that the Keras session initializes."""
    if _executing_eagerly() or tf_api.v1.get_default_graph().building_function:
        with tf.init_scope():
            return tf.Variable(tf.zeros(shape, dtype), trainable=False, name=name)
    variable = tf_api.keras_backend().variable(tf.zeros(shape, dtype), dtype.name, name)
    tf_api.keras_backend().get_session()  # initializes it
    return variable
