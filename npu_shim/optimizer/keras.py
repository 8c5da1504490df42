"""Keras optimizers that average gradients over ranks. On one process they are the wrapped optimizer."""
from __future__ import annotations

from typing import Any

from npu_shim.distributed.ranks import require_single_process


class KerasDistributeOptimizer:
    """Wraps a Keras optimizer so that its gradients are averaged over all ranks.

    The result is an optimizer of the wrapped one's class, with its
    configuration, and an instance of this class too; so Keras takes it wherever
    it takes the original. On one process it behaves as the original.

    Args:
        optimizer: a Keras optimizer.
        name: of the optimizer.
        **kwargs: more of the optimizer's configuration, such as clipnorm.
    Raises:
        TypeError: optimizer is no Keras optimizer.
        RuntimeError: several ranks; that is not part of this release.
    """

    def __new__(cls, optimizer: Any, name: str = "NpuKerasOptimizer", **kwargs: Any) -> Any:
        require_single_process("KerasDistributeOptimizer")
        if not hasattr(optimizer, "get_config") or not hasattr(type(optimizer), "from_config"):
            raise TypeError(
                f"optimizer={optimizer!r} is {type(optimizer).__name__}, but must be a Keras optimizer. For a "
                "tf.compat.v1.train.Optimizer use npu_tf_optimizer."
            )
        inner = type(optimizer)
        both = type(inner.__name__, (_Made, inner), {"__module__": inner.__module__})
        return both.from_config({**optimizer.get_config(), "name": name, **kwargs})


class _Made(KerasDistributeOptimizer):
    """Gives what KerasDistributeOptimizer made its type, and Keras its own way to make one."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        make = super(KerasDistributeOptimizer, cls).__new__
        return make(cls) if make is object.__new__ else make(cls, *args, **kwargs)


def npu_keras_optimizer(opt: Any) -> Any:
    """``KerasDistributeOptimizer(opt)``."""
    return KerasDistributeOptimizer(opt)
