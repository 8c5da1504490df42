"""Broadcasts of initial values: of a Keras model, by a callback, and of the variables of a strategy's scope."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Callable, ContextManager, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.tf_keras import is_autocast_variable
from npu_shim._tensorflow.types import KerasModel, Strategy, Variable
from npu_shim.npu_device.distribute import hccl
from npu_shim.npu_device.distribute.broadcast_callback import (
    NPUBroadcastGlobalVariablesCallback as NPUBroadcastGlobalVariablesCallback,
)
from npu_shim.npu_device.npu_device import get_ranksize as get_ranksize

_MARK = "_npu_shim_broadcasts"
# By id, the variables that were sent
broadcast_registry: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


def broadcast_helper(variables: Sequence[Variable], root_rank: int = 0) -> None:
    """Broadcast each of the variables that no earlier call has sent.

    Args:
        variables: variables of the model. Those that Keras casts for mixed precision are left out.
        root_rank: the rank whose variables are sent.
    """
    new = [
        variable
        for variable in variables
        if id(variable) not in broadcast_registry and not is_autocast_variable(variable)
    ]
    if new:
        hccl.broadcast(new, root_rank)
        broadcast_registry.update((id(variable), variable) for variable in new)


def broadcast_keras_model(model: KerasModel, root_rank: int = 0) -> KerasModel:
    """Broadcast the trainable variables of a model that is built, and return it; another object is returned as it is.

    Args:
        model: a Keras model.
        root_rank: the rank whose variables are sent.
    """
    if isinstance(model, tf.keras.Model) and model.built:
        broadcast_helper(model.trainable_variables, root_rank)
    return model


class NpuBroadcastScopeContext:
    """A strategy's scope at whose end the trainable variables made inside are broadcast.

    Args:
        org_scope_ctx: the context manager of the scope, or None.
        model_trainable_variables: a list to which the variables are added.
    """

    def __init__(
        self, org_scope_ctx: ContextManager[Strategy] | None, model_trainable_variables: list[Variable]
    ) -> None:
        self.org_scope_ctx = org_scope_ctx
        self.model_trainable_variables = model_trainable_variables
        self.broadcast_scope = tf.variable_creator_scope(self._create_and_note)

    def _create_and_note(self, create: Callable[..., Variable], **kwargs: object) -> Variable:
        variable = create(**kwargs)
        if variable.trainable:
            self.model_trainable_variables.append(variable)
        return variable

    def __enter__(self) -> Strategy | None:
        entered = self.org_scope_ctx.__enter__() if self.org_scope_ctx else None
        self.broadcast_scope.__enter__()
        return entered

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.broadcast_scope.__exit__(exception_type, exception_value, traceback)
        if self.org_scope_ctx:
            self.org_scope_ctx.__exit__(exception_type, exception_value, traceback)
        if exception_type is None and not tf.distribute.has_strategy():  # the outermost scope
            broadcast_helper(self.model_trainable_variables)


def npu_broadcast_scope_wrapper(strategy: Strategy) -> Strategy:
    """Make strategy.scope() broadcast the trainable variables made inside when it ends, and return the strategy.

    Args:
        strategy: a tf.distribute.Strategy; another object is returned as it is.
    """
    if isinstance(strategy, tf.distribute.Strategy) and not hasattr(strategy.scope, _MARK):
        original = strategy.scope
        variables: list[Variable] = []

        def scope() -> NpuBroadcastScopeContext:
            return NpuBroadcastScopeContext(original(), variables)

        setattr(scope, _MARK, True)
        strategy.scope = scope
    return strategy


host_device.copy_vendor_names(__name__, own="NPUBroadcastGlobalVariablesCallback")
