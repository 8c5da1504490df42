"""Base class of optimizers that wrap another optimizer."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Optimizer, Variable


class WrappingOptimizer(tf_api.v1.train.Optimizer):
    """An optimizer with the slots and variables of the optimizer that it wraps.

    Args:
        opt: a tf.compat.v1.train.Optimizer.
        name: name of this optimizer.
        use_locking: as for tf.compat.v1.train.Optimizer.
    """

    def __init__(self, opt: Optimizer, name: str, use_locking: bool = False) -> None:
        super().__init__(use_locking=use_locking, name=name)
        self._opt = opt

    def get_slot(self, *args: object, **kwargs: object) -> Variable | None:
        """Return a slot of the wrapped optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: object, **kwargs: object) -> list[str]:
        """Return the names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self, *args: object, **kwargs: object) -> list[Variable]:
        """Return the wrapped optimizer's variables."""
        return self._opt.variables(*args, **kwargs)


def check_optimizer(argument: str, value: object, instead: str = "") -> None:
    """Raise an error if a value is not a TensorFlow 1 optimizer.

    Args:
        argument: name of the argument.
        value: the optimizer to wrap.
        instead: what to do instead, as a sentence.
    Raises:
        TypeError: if it is not a tf.compat.v1.train.Optimizer.
    """
    if not isinstance(value, tf_api.v1.train.Optimizer):
        raise TypeError(
            f"{argument}={value!r} is {type(value).__name__}, but must be a tf.compat.v1.train.Optimizer."
            f"{instead and ' ' + instead}"
        )
