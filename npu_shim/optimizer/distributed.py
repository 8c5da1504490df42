"""Optimizers that average gradients over ranks. On one process they behave as the wrapped optimizer."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Operation, Optimizer, Tensor, Tensors, Variable
from npu_shim.distributed.world import WORLD, world, world_size
from npu_shim.optimizer.gradient_averaging import (
    GradientAndVariable,
    GradientsAndVariables,
    average_gradients,
    gradients_marked_as_reduced,
    patch_to_average,
    reduce_all,
)
from npu_shim.optimizer.wrapper import WrappingOptimizer, check_optimizer

_VENDOR = "npu_bridge.estimator.npu.npu_optimizer"


def npu_allreduce(
    values: Tensors, reduction: str = "mean", fusion: int = 1, fusion_id: int = -1, group: str = WORLD
) -> Tensors:
    """Reduce tensors over all ranks.

    Args:
        values: a tensor, or a list or tuple of tensors.
        reduction: 'mean', 'sum', 'max', 'min' or 'prod'.
        fusion, fusion_id, group: as for hccl_ops.allreduce.
    Returns:
        A tensor, or a list of them; for tf.IndexedSlices the rows of all ranks. 'mean' divides by the group's size.
        On one process: the same values.
    Raises:
        ValueError: if the reduction is not allowed, or neither 'mean' nor 'sum' for IndexedSlices.
    """
    from npu_shim.distributed import hccl_ops

    if reduction not in ("mean",) + hccl_ops.REDUCTIONS:
        raise ValueError(
            f"reduction={reduction!r} is not allowed: it must be one of mean, {', '.join(hccl_ops.REDUCTIONS)}."
        )
    several = isinstance(values, (list, tuple))
    given = list(values) if several else [values]
    results = reduce_all(given, reduction, group)
    return results if several else results[0]


def allreduce(tensor: Tensor, average: bool = True) -> Tensors:
    """Return the mean of a tensor over all ranks, or its sum; on one process the same values."""
    return npu_allreduce(tensor, "mean" if average else "sum")


def reduce(tensor: Tensor, root_rank: int, average: bool = True, fusion: int = 0, fusion_id: int = -1) -> Tensor:
    """Reduce a tensor to one rank: the mean over all ranks, or the sum. Other ranks get their own tensor back.

    Args:
        tensor: a tensor; for tf.IndexedSlices every rank gets the rows of all ranks.
        root_rank: the rank that gets the result.
        average: True for the mean.
        fusion, fusion_id: as for hccl_ops.reduce.
    Raises:
        ValueError: root_rank or fusion is not allowed.
    """
    from npu_shim.distributed import hccl_ops

    if isinstance(tensor, tf_api.tf.IndexedSlices):
        return allreduce(tensor, average)
    here = world()
    total = hccl_ops.reduce(tensor, "sum", root_rank, fusion, fusion_id)
    if here.rank != root_rank or not average:
        return total
    return total / tf_api.tf.cast(here.size, total.dtype)


class NPUDistributedOptimizer(WrappingOptimizer):
    """Wrap an optimizer so that its gradients are averaged over all ranks.

    On one process it behaves as the wrapped optimizer.

    Args:
        optimizer: a tf.compat.v1.train.Optimizer.
        is_weight_update_sharding: on the NPU each variable is updated by one rank, which sends it to the others. On the
            CPU each rank updates all variables, with the same result.
        name: name of the optimizer.
    Raises:
        TypeError: if optimizer is not an optimizer.
        ValueError: in compute_gradients, with is_weight_update_sharding, if there are fewer gradients than ranks.
    """

    def __init__(self, optimizer: Optimizer, is_weight_update_sharding: bool = False, name: str | None = None) -> None:
        check_optimizer("optimizer", optimizer, "For a Keras optimizer use npu_keras_optimizer.")
        super().__init__(optimizer, name or "Distributed" + type(optimizer).__name__)
        self._is_weight_update_sharding = is_weight_update_sharding

    def compute_gradients(self, *args: object, **kwargs: object) -> list[GradientAndVariable]:
        """Return the wrapped optimizer's gradients, averaged over all ranks."""
        pairs = self._opt.compute_gradients(*args, **kwargs)
        size, count = world_size(), sum(gradient is not None for gradient, _ in pairs)
        if self._is_weight_update_sharding and count < size:
            raise ValueError(
                f"is_weight_update_sharding=True needs a gradient for each of {size} ranks, and there are "
                f"{count}. Remove the argument."
            )
        return average_gradients(pairs) if size > 1 else pairs

    def apply_gradients(
        self, grads_and_vars: GradientsAndVariables, global_step: Variable | None = None, name: str | None = None
    ) -> Operation:
        """Apply gradients with the wrapped optimizer."""
        with gradients_marked_as_reduced():
            return self._opt.apply_gradients(grads_and_vars, global_step=global_step, name=name)


def npu_tf_optimizer(opt: Optimizer) -> NPUDistributedOptimizer:
    """Return ``NPUDistributedOptimizer(opt)``."""
    return host_device.vendor_object_or(NPUDistributedOptimizer, _VENDOR)(opt)


def npu_distributed_optimizer_wrapper(optimizer: Optimizer | str) -> Optimizer:
    """Make an optimizer average its gradients over all ranks.

    Args:
        optimizer: a TF or Keras optimizer, or the name of a Keras optimizer.
    Returns:
        The same optimizer (for a name, the optimizer of this name), which now averages. On one process it does not
        change.
    """
    if isinstance(optimizer, str):
        optimizer = tf_api.v1.keras.optimizers.get(optimizer)
    if world_size() > 1:
        patch_to_average(optimizer)
    return optimizer
