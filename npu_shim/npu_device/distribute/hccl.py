"""Collectives on tensors, variables and optimizers, in eager code and in tf.function."""

from __future__ import annotations

import warnings
from typing import Iterable, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Dataset, Optimizer, Result, Structure, Tensor, Variable
from npu_shim.distributed import hccl_ops
from npu_shim.distributed.hccl_checks import check_fusion, check_reduction
from npu_shim.distributed.world import WORLD, world_size
from npu_shim.npu_device.distribute.broadcast_callback import npu_callbacks_append as npu_callbacks_append
from npu_shim.npu_device.npu_device import global_npu_ctx
from npu_shim.npu_device.utils.scope import npu_optimizer_scope
from npu_shim.optimizer.gradient_averaging import GradientAndVariable, reduce_all


def is_worker(caller: str) -> bool:
    """Return True if ranks must communicate: there are several, and the device is open.

    Args:
        caller: the function that asks, for the warning about several ranks without an open device.
    """
    if world_size() == 1:
        return False
    if global_npu_ctx() is None:
        warnings.warn(
            f"{caller} does nothing: this process is one of {world_size()} ranks, but its device is not open. Call "
            "npu.open().as_default() first.",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    return True


def shard_and_rebatch_dataset(dataset: Dataset, global_bs: int) -> tuple[Dataset, int]:
    """Return the part of a dataset for this rank, and the batch size of a rank.

    Args:
        dataset: a tf.data.Dataset of single examples; it is not batched here.
        global_bs: the batch size of all ranks together.
    Returns:
        dataset.shard(ranks, rank) and global_bs / ranks; both as given on one process.
    Raises:
        ValueError: global_bs is not a multiple of the number of ranks.
    """
    if not is_worker("npu.distribute.shard_and_rebatch_dataset"):
        return dataset, global_bs
    handle = global_npu_ctx()
    assert handle is not None
    if global_bs % handle.workers_num:
        raise ValueError(
            f"global_bs={global_bs} is not allowed: it must be a multiple of the number of ranks, {handle.workers_num}."
        )
    return dataset.shard(handle.workers_num, handle.worker_id), global_bs // handle.workers_num


def all_reduce(
    values: Structure, reduction: str = "mean", fusion: int = 1, fusion_id: int = -1, group: str = WORLD
) -> Structure:
    """Reduce each of several tensors over the ranks of a group; every rank gets the results.

    Args:
        values: a tensor, or a list or tuple of tensors, also nested. None stays None. tf.IndexedSlices are reduced as
            dense tensors.
        reduction: 'mean', 'sum', 'prod', 'max' or 'min'. The mean of integers is a true quotient, as of tf.divide.
        fusion: 0 for none, 1 for the buckets of the gradients, 2 for fusion_id.
        fusion_id: the bucket, with fusion=2.
        group: name of the group.
    Returns:
        A tensor, or a list of the structure of values. values itself on one process.
    Raises:
        ValueError: the reduction, fusion or group is not allowed.
    """
    if reduction != "mean":
        check_reduction(reduction)
    check_fusion(fusion, fusion_id, (0, 1, 2))
    if not is_worker("npu.distribute.all_reduce"):
        return values
    flat = tf.nest.flatten(values)
    given = [index for index, value in enumerate(flat) if value is not None]
    tensors = [tf.convert_to_tensor(flat[index]) for index in given]
    whole = [reduction == "mean" and tensor.dtype.is_integer for tensor in tensors]
    results: list[Tensor] = [None] * len(flat)
    for members, chosen in (
        ([place for place, is_whole in enumerate(whole) if not is_whole], reduction),
        ([place for place, is_whole in enumerate(whole) if is_whole], "sum"),
    ):
        reduced = reduce_all([tensors[place] for place in members], chosen, group)
        for place, tensor in zip(members, reduced):
            results[given[place]] = tf.divide(tensor, _group_size(group)) if whole[place] else tensor
    return _pack_like(values, results)


def _group_size(group: str) -> int:
    from npu_shim.distributed.ranks import get_rank_size

    return get_rank_size(group)


def _pack_like(like: Structure, flat: Sequence[Tensor]) -> Structure:
    """Return the results in the structure of the values; a flat tuple becomes a list, as in the vendor's package."""
    packed = tf.nest.pack_sequence_as(like, list(flat))
    return list(packed) if type(packed) is tuple else packed


def broadcast(
    values: Variable | Sequence[Variable],
    root_rank: int = 0,
    fusion: int = 2,
    fusion_id: int = 0,
    group: str = WORLD,
) -> None:
    """Set variables to those of the root rank, in place.

    Args:
        values: a variable, or a list of variables.
        root_rank: the rank in the group whose variables are sent.
        fusion: 0 for none, 2 for fusion_id.
        fusion_id: the bucket, with fusion=2.
        group: name of the group.
    Raises:
        ValueError: the fusion or group is not allowed, or the group has no such rank.
    """
    if is_worker("npu.distribute.broadcast"):
        variables = list(values) if isinstance(values, (list, tuple)) else [values]
        hccl_ops.broadcast(variables, root_rank, fusion, fusion_id, group)


def npu_distributed_keras_optimizer_wrapper(
    optimizer: Optimizer | str,
    reduce_reduction: str = "mean",
    fusion: int = 1,
    fusion_id: int = -1,
    group: str = WORLD,
) -> Optimizer:
    """Make a Keras optimizer reduce gradients over the ranks before it applies them.

    Args:
        optimizer: a Keras optimizer, which is changed, or its name.
        reduce_reduction: as for all_reduce.
        fusion: as for all_reduce.
        fusion_id: as for all_reduce.
        group: name of the group.
    Returns:
        The optimizer.
    """
    optimizer = tf.keras.optimizers.get(optimizer)
    apply = optimizer.apply_gradients

    def apply_reduced(grads_and_vars: Iterable[GradientAndVariable], *args: object, **kwargs: object) -> Result:
        pairs = list(grads_and_vars)
        reduced = all_reduce([gradient for gradient, _ in pairs], reduce_reduction, fusion, fusion_id, group)
        with npu_optimizer_scope():
            return apply(list(zip(reduced, [variable for _, variable in pairs])), *args, **kwargs)

    optimizer.apply_gradients = apply_reduced
    return optimizer


host_device.copy_vendor_names(__name__, own="npu_callbacks_append")
