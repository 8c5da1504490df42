"""Keras optimizers that average gradients over ranks. On one process they behave as the wrapped optimizer."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow.types import Function, Optimizer, OptimizerClass, Result
from npu_shim.optimizer.gradient_averaging import KERAS_METHODS

_MARK = "_npu_shim_distributed"


class _OptimizerFactory(type):
    """A class whose call returns an optimizer of the wrapped optimizer's class, so that Keras accepts it everywhere."""

    def __call__(cls, optimizer: Optimizer, name: str = "NpuKerasOptimizer", **kwargs: object) -> Optimizer:
        if not hasattr(optimizer, "get_config") or not hasattr(type(optimizer), "from_config"):
            raise TypeError(
                f"optimizer={optimizer!r} is {type(optimizer).__name__}, but must be a Keras optimizer. For a "
                "tf.compat.v1.train.Optimizer use npu_tf_optimizer."
            )
        original: OptimizerClass = type(optimizer)
        averaging: OptimizerClass = original if _is_averaging(original) else _averaging_class(original)
        config = optimizer.get_config()
        if "name" in config:  # the optimizers of the package keras have no name
            config["name"] = name
        return averaging.from_config({**config, **kwargs})

    def __instancecheck__(cls, instance: object) -> bool:
        return _is_averaging(type(instance))


class KerasDistributeOptimizer(metaclass=_OptimizerFactory):
    """Wrap a Keras optimizer so that its gradients are averaged over all ranks.

    The result is an optimizer of the wrapped optimizer's class, with its
    configuration. isinstance also finds it to be of this class. On one process
    it behaves as the original.

    Args:
        optimizer: a Keras optimizer.
        name: name of the optimizer.
        **kwargs: other configuration of the optimizer, such as clipnorm.
    Raises:
        TypeError: if optimizer is not a Keras optimizer.
    """


def _averaging_class(original: OptimizerClass) -> OptimizerClass:
    """Return a subclass of an optimizer's class that averages gradients."""

    def method(name: str) -> Function:
        def changed(self: Optimizer, *args: object, **kwargs: object) -> Result:
            return KERAS_METHODS[name](getattr(super(averaging, self), name))(*args, **kwargs)

        return changed

    methods = {name: method(name) for name in KERAS_METHODS if hasattr(original, name)}
    averaging: OptimizerClass = type(
        original.__name__, (original,), {_MARK: True, "__module__": original.__module__, **methods}
    )
    return averaging


def _is_averaging(optimizer_class: type) -> bool:
    return getattr(optimizer_class, _MARK, False)


def npu_keras_optimizer(opt: Optimizer) -> Optimizer:
    """Return ``KerasDistributeOptimizer(opt)``."""
    wrapper: OptimizerClass = host_device.vendor_object_or(
        KerasDistributeOptimizer, "npu_bridge.estimator.npu.npu_optimizer"
    )
    return wrapper(opt)
