"""Optimizers that average gradients over ranks. On one process they are the wrapped optimizer."""

from __future__ import annotations

from typing import Any

from npu_shim import _device, _tf
from npu_shim.distributed.world import WORLD, world_size
from npu_shim.optimizer.gradient_averaging import average, make_averaging, reduce_all, reduced
from npu_shim.optimizer.wrapper import WrappingOptimizer, check_optimizer


def npu_allreduce(
    values: Any, reduction: str = "mean", fusion: int = 1, fusion_id: int = -1, group: str = WORLD
) -> Any:
    """Reduces tensors over all ranks.

    Args:
        values: a tensor, or a list or tuple of tensors.
        reduction: 'mean', 'sum', 'max', 'min' or 'prod'.
        fusion, fusion_id, group: as for hccl_ops.allreduce.
    Returns:
        A tensor, or a list of them; of tf.IndexedSlices the rows of all ranks. 'mean' divides by the size of the group. On
        one process: the same values.
    Raises:
        ValueError: another reduction, or IndexedSlices with one other than 'mean' and 'sum'.
    """
    from npu_shim.distributed import hccl_ops

    if reduction not in ("mean",) + hccl_ops.REDUCTIONS:
        raise ValueError(
            f"reduction={reduction!r} is not allowed: it must be one of mean, {', '.join(hccl_ops.REDUCTIONS)}."
        )
    several = isinstance(values, (list, tuple))
    given = list(values) if several else [values]
    if _device.device().is_npu:
        vendor = _device.vendor("npu_bridge.estimator.npu.npu_optimizer")
        made = [None if v is None else vendor.npu_allreduce(v, reduction, fusion, fusion_id, group) for v in given]
    else:
        made = reduce_all(given, reduction, group)
    return made if several else made[0]


def allreduce(tensor: Any, average: bool = True) -> Any:
    """The sum of a tensor over all ranks, or its mean; on one process the same values."""
    return npu_allreduce(tensor, "mean" if average else "sum")


@_device.on_card("npu_bridge.estimator.npu.npu_optimizer")
class NPUDistributedOptimizer(WrappingOptimizer):
    """Wraps an optimizer so that its gradients are averaged over all ranks.

    On one process it behaves as the wrapped optimizer.

    Args:
        optimizer: a tf.compat.v1.train.Optimizer.
        is_weight_update_sharding: on the card each variable is updated by one rank, which gives it to the others. Without
            cards each rank updates all of them, to the same numbers.
        name: of the optimizer.
    Raises:
        TypeError: optimizer is no optimizer.
        ValueError: in compute_gradients, with is_weight_update_sharding: there are fewer gradients than ranks.
    """

    def __init__(self, optimizer: Any, is_weight_update_sharding: bool = False, name: str | None = None) -> None:
        check_optimizer("optimizer", optimizer, "For a Keras optimizer use npu_keras_optimizer.")
        super().__init__(optimizer, name or "Distributed" + type(optimizer).__name__)
        self._is_weight_update_sharding = is_weight_update_sharding

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's gradients, averaged over all ranks."""
        pairs = self._opt.compute_gradients(*args, **kwargs)
        size, found = world_size(), sum(gradient is not None for gradient, _ in pairs)
        if self._is_weight_update_sharding and found < size:
            raise ValueError(
                f"is_weight_update_sharding=True needs a gradient for each of {size} ranks, and there are "
                f"{found}: leave it out."
            )
        return average(pairs) if size > 1 else pairs

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The wrapped optimizer's."""
        with reduced():
            return self._opt.apply_gradients(grads_and_vars, global_step=global_step, name=name)


def npu_tf_optimizer(opt: Any) -> NPUDistributedOptimizer:
    """``NPUDistributedOptimizer(opt)``."""
    return NPUDistributedOptimizer(opt)


def npu_distributed_optimizer_wrapper(optimizer: Any) -> Any:
    """Makes an optimizer average its gradients over all ranks.

    Args:
        optimizer: a TF or Keras optimizer, or the name of a Keras optimizer.
    Returns:
        The same optimizer (for a name, the optimizer it names), which from now on averages. On one process it is not
        touched.
    """
    if isinstance(optimizer, str):
        optimizer = _tf.v1.keras.optimizers.get(optimizer)
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu.npu_optimizer").npu_distributed_optimizer_wrapper(optimizer)
    if world_size() > 1:
        make_averaging(optimizer)
    return optimizer
