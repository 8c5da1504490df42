"""Keras optimizers that average gradients over ranks. On one process they are the wrapped optimizer."""

from __future__ import annotations

from typing import Any

from npu_shim import _device
from npu_shim.distributed.world import world_size
from npu_shim.optimizer.gradient_averaging import adds_up, average

_MARK = "_npu_shim_distributed"


class _Wraps(type):
    """Calling the class gives an optimizer of the wrapped one's class, so Keras takes it wherever it took the original."""

    def __call__(cls, optimizer: Any, name: str = "NpuKerasOptimizer", **kwargs: Any) -> Any:
        if _device.device().is_npu:
            return _device.vendor("npu_bridge.estimator.npu.npu_optimizer").KerasDistributeOptimizer(
                optimizer, name, **kwargs
            )
        if not hasattr(optimizer, "get_config") or not hasattr(type(optimizer), "from_config"):
            raise TypeError(
                f"optimizer={optimizer!r} is {type(optimizer).__name__}, but must be a Keras optimizer. For a "
                "tf.compat.v1.train.Optimizer use npu_tf_optimizer."
            )
        inner: Any = type(optimizer)
        wrapped: Any = inner if _is_wrapped(inner) else _averaging(inner)
        return wrapped.from_config({**optimizer.get_config(), "name": name, **kwargs})

    def __instancecheck__(cls, instance: Any) -> bool:
        return _is_wrapped(type(instance))


class KerasDistributeOptimizer(metaclass=_Wraps):
    """Wraps a Keras optimizer so that its gradients are averaged over all ranks.

    The result is an optimizer of the wrapped one's class, with its
    configuration; isinstance finds it to be of this class too. On one process
    it behaves as the original.

    Args:
        optimizer: a Keras optimizer.
        name: of the optimizer.
        **kwargs: more of the optimizer's configuration, such as clipnorm.
    Raises:
        TypeError: optimizer is no Keras optimizer.
    """


def _averaging(inner: Any) -> Any:
    """A class of optimizers that average."""

    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = average(list(grads_and_vars)) if world_size() > 1 and not adds_up() else grads_and_vars
        return super(made, self).apply_gradients(pairs, *args, **kwargs)

    made: Any = type(
        inner.__name__, (inner,), {_MARK: True, "__module__": inner.__module__, "apply_gradients": apply_gradients}
    )
    return made


def _is_wrapped(kind: type) -> bool:
    return getattr(kind, _MARK, False)


def npu_keras_optimizer(opt: Any) -> Any:
    """``KerasDistributeOptimizer(opt)``."""
    return KerasDistributeOptimizer(opt)  # type: ignore[call-arg]  # its metaclass makes another class
