"""What optimizers that wrap another one have in common."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf


class WrappingOptimizer(_tf.v1.train.Optimizer):
    """An optimizer whose slots and variables are those of the optimizer it wraps.

    Args:
        opt: a tf.compat.v1.train.Optimizer.
        name: of this one.
    """

    def __init__(self, opt: Any, name: str) -> None:
        super().__init__(use_locking=False, name=name)
        self._opt = opt

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._opt.variables(*args, **kwargs)


def check_optimizer(argument: str, value: Any, instead: str = "") -> None:
    """Refuses what is no optimizer.

    Args:
        argument: what the value was given as.
        value: to be wrapped.
        instead: what to do, as a sentence.
    Raises:
        TypeError: it is no tf.compat.v1.train.Optimizer.
    """
    if not isinstance(value, _tf.v1.train.Optimizer):
        raise TypeError(
            f"{argument}={value!r} is {type(value).__name__}, but must be a tf.compat.v1.train.Optimizer."
            f"{instead and ' ' + instead}"
        )
