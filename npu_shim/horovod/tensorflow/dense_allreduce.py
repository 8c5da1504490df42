"""The reductions of Horovod, and allreduce of one and of several tensors."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.horovod.common import process_sets as sets
from npu_shim.horovod.common.basics import ADASUM, AVERAGE, MAX, MIN, PRODUCT, SUM, basics
from npu_shim.horovod.common.process_sets import ProcessSet, global_process_set
from npu_shim.horovod.tensorflow import group_collectives
from npu_shim.horovod.tensorflow.gradients import scale_tensor
from npu_shim.horovod.tensorflow.naming import collective_name

Average, Sum, Adasum, Min, Max, Product = AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT
_REDUCTIONS = {AVERAGE: "sum", SUM: "sum", MIN: "min", MAX: "max", PRODUCT: "prod"}


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int:
    """Return the reduction that ``op`` or the older argument ``average`` selects; Average by default.

    Raises:
        ValueError: both are given.
    """
    if op is None:
        return Average if average is None or average else Sum
    if average is not None:
        raise ValueError("op and average are both given. Pass op only: hvd.Average or hvd.Sum.")
    return op


def reduction_name(op: int, caller: str) -> str:
    """Return the name of the reduction that the collectives run for an ``op`` of Horovod.

    Raises:
        NotImplementedError: for Adasum.
        ValueError: there is no such op.
    """
    if op == Adasum:
        raise NotImplementedError(
            f"{caller}: op=hvd.Adasum is not supported. Use op=hvd.Average; to train with many ranks, scale the "
            "learning rate and warm it up (hvd.callbacks.LearningRateWarmupCallback)."
        )
    if op not in _REDUCTIONS:
        raise ValueError(f"{caller}: op={op!r} is not allowed. Pass hvd.Average, Sum, Min, Max or Product.")
    return _REDUCTIONS[op]


def _allreduce(
    tensor: Tensor,
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Tensor:
    """Reduce one tensor. See _grouped_allreduce."""
    return _grouped_allreduce(
        [tensor], name, op, prescale_factor, postscale_factor, ignore_name_scope, process_set, kind="Allreduce"
    )[0]


def _grouped_allreduce(
    tensors: Sequence[Tensor],
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    kind: str = "GroupedAllreduce",
) -> list[Tensor]:
    """Reduce tensors over the ranks of a process set; those of one type travel in one message.

    Args:
        tensors: of any shapes, the same on every rank.
        name: the name of the collective.
        op: Average, Sum, Min, Max or Product.
        prescale_factor: multiplies the tensors before the reduction.
        postscale_factor: multiplies the results.
        ignore_name_scope: True if name is the same in every name scope.
        process_set: the ranks that take part.
        kind: what the collective is called without a name.
    Returns:
        Tensors of the same shapes and types. Integers are scaled as float64 and rounded towards zero.
    """
    reduction, ranks = reduction_name(op, f"hvd.{kind.lower()}"), size_of_process_set(process_set)
    inputs = [scale_tensor(tf.convert_to_tensor(tensor), prescale_factor) for tensor in tensors]
    results: list[Tensor] = [None] * len(inputs)
    types = list(dict.fromkeys(tensor.dtype.base_dtype for tensor in inputs))
    for dtype in types:
        members = [index for index, tensor in enumerate(inputs) if tensor.dtype.base_dtype == dtype]
        suffix = "" if len(types) == 1 else f"_{dtype.name}"
        sent = [inputs[index] for index in members]
        full_name = collective_name(kind, None if name is None else name + suffix, sent, ignore_name_scope)
        for index, reduced in zip(members, group_collectives.allreduce(sent, reduction, full_name, process_set)):
            results[index] = scale_tensor(reduced, postscale_factor, ranks if op == Average else 1)
    return results


def size_of_process_set(process_set: ProcessSet) -> int:
    """Return the number of ranks in a process set, which must be registered."""
    sets.group_name_of(process_set)
    basics.size()
    return len(process_set.ranks)
