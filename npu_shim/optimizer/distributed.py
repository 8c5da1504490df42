"""Optimizers that average gradients over ranks. On one process they are the wrapped optimizer."""
from __future__ import annotations

from typing import Any, Optional

from npu_shim import _device, _tf
from npu_shim.distributed import hccl_ops
from npu_shim.distributed.ranks import WORLD, require_single_process, world_size

tf = _tf.tf


def npu_allreduce(values: Any, reduction: str = "mean", fusion: int = 1, fusion_id: int = -1, group: str = WORLD) -> Any:
    """Reduces tensors over all ranks.

    Args:
        values: a tensor, or a list or tuple of tensors.
        reduction: 'mean', 'sum', 'max', 'min' or 'prod'.
        fusion, fusion_id, group: as for hccl_ops.allreduce.
    Returns:
        A tensor, or a list of them. On one process: the same values.
    Raises:
        ValueError: another reduction.
        RuntimeError: several ranks without cards.
    """
    if reduction not in ("mean",) + hccl_ops.REDUCTIONS:
        raise ValueError(
            f"reduction={reduction!r} is not allowed: it must be one of mean, {', '.join(hccl_ops.REDUCTIONS)}."
        )
    if isinstance(values, (list, tuple)):
        return [_allreduce(v, reduction, fusion, fusion_id, group) for v in values]
    return _allreduce(values, reduction, fusion, fusion_id, group)


def _allreduce(value: Any, reduction: str, fusion: int, fusion_id: int, group: str) -> Any:
    if value is None:
        return None
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu.npu_optimizer").npu_allreduce(
            value, reduction, fusion, fusion_id, group)
    require_single_process("npu_allreduce")
    if isinstance(value, tf.IndexedSlices):
        return value
    return hccl_ops.allreduce(value, "sum" if reduction == "mean" else reduction, fusion, fusion_id, group)


def allreduce(tensor: Any, average: bool = True) -> Any:
    """The sum of a tensor over all ranks, or its mean; on one process the same values."""
    return npu_allreduce(tensor, "mean" if average else "sum")


@_device.on_card("npu_bridge.estimator.npu.npu_optimizer")
class NPUDistributedOptimizer(_tf.v1.train.Optimizer):
    """Wraps an optimizer so that its gradients are averaged over all ranks.

    On one process it behaves as the wrapped optimizer.

    Args:
        optimizer: a tf.compat.v1.train.Optimizer.
        is_weight_update_sharding: share the update among the ranks; on one process there is nobody to share with.
        name: of the optimizer.
    Raises:
        TypeError: optimizer is no optimizer.
        RuntimeError: gradients are computed on several ranks without cards.
    """

    def __init__(self, optimizer: Any, is_weight_update_sharding: bool = False, name: Optional[str] = None) -> None:
        if not isinstance(optimizer, _tf.v1.train.Optimizer):
            raise TypeError(
                f"optimizer={optimizer!r} is {type(optimizer).__name__}, but must be a tf.compat.v1.train.Optimizer. "
                "For a Keras optimizer use npu_keras_optimizer."
            )
        super().__init__(use_locking=False, name=name or "Distributed" + type(optimizer).__name__)
        self._optimizer = optimizer
        self._is_weight_update_sharding = is_weight_update_sharding

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's gradients, averaged over all ranks."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if world_size() == 1:
            return pairs
        return [(npu_allreduce(gradient), variable) for gradient, variable in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """The wrapped optimizer's."""
        return self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._optimizer.variables(*args, **kwargs)


def npu_tf_optimizer(opt: Any) -> NPUDistributedOptimizer:
    """``NPUDistributedOptimizer(opt)``."""
    return NPUDistributedOptimizer(opt)


def npu_distributed_optimizer_wrapper(optimizer: Any) -> Any:
    """Makes an optimizer average its gradients over all ranks.

    Args:
        optimizer: a TF or Keras optimizer, or the name of a Keras optimizer.
    Returns:
        The same optimizer (for a name, the optimizer it names). On one process it is not touched.
    Raises:
        RuntimeError: several ranks without cards.
    """
    if isinstance(optimizer, str):
        optimizer = _tf.v1.keras.optimizers.get(optimizer)
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu.npu_optimizer").npu_distributed_optimizer_wrapper(optimizer)
    require_single_process("npu_distributed_optimizer_wrapper")
    return optimizer
