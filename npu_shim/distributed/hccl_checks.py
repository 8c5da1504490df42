"""Argument checks of HCCL's collectives."""

from __future__ import annotations

import warnings
from typing import Sequence, Tuple

from npu_shim._tensorflow.tf_api import tf
from npu_shim.distributed import groups
from npu_shim.distributed.groups import is_int
from npu_shim.distributed.world import world, world_size

Types = Tuple[tf.DType, ...]

REDUCTIONS = ("sum", "prod", "max", "min")
# The types that HCCL's ops are registered for
REDUCED_TYPES = (tf.int8, tf.int16, tf.int32, tf.int64, tf.float16, tf.float32, tf.bfloat16)
SENT_TYPES = REDUCED_TYPES + (tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float64)


def check_reduction(reduction: str) -> None:
    """Raise ValueError for an unknown reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r} is not allowed. Use one of {', '.join(REDUCTIONS)}.")


def check_fusion(fusion: int, fusion_id: int, allowed: Sequence[int]) -> None:
    """Raise ValueError for a fusion that is not allowed."""
    if fusion not in allowed:
        raise ValueError(f"fusion={fusion!r} is not allowed. Use one of {', '.join(map(str, allowed))}.")
    if fusion == 2 and fusion_id < 0:
        raise ValueError(f"fusion_id={fusion_id!r} is not allowed with fusion=2. Use 0 or more.")


def is_single_rank_group(group: str) -> bool:
    """Return True if a group has one rank. The group must exist."""
    return world_size() == 1 or groups.find_group(group).size == 1


def own_rank(group: str) -> int:
    """Return the rank of this process in a group."""
    here = world()
    return groups.find_group(group, here).rank_of(here.rank)


def group_size(group: str) -> int:
    """Return the number of ranks in a group."""
    return 1 if world_size() == 1 else groups.find_group(group).size


def check_rank_size(rank_size: int, group: str, name: str) -> None:
    """Raise ValueError if rank_size is not the size of the group."""
    size = group_size(group)
    if rank_size != size:
        raise ValueError(
            f"{name}: rank_size={rank_size!r} is not allowed: group {group!r} has {size} "
            f"rank{'' if size == 1 else 's'}. Pass {size}."
        )


def check_member(rank: int, argument: str, group: str, name: str) -> None:
    """Raise ValueError if a rank is not in the group."""
    size = group_size(group)
    if not is_int(rank) or not 0 <= rank < size:
        raise ValueError(f"{name}: {argument}={rank!r} is not allowed: group {group!r} has ranks 0 to {size - 1}.")


def check_other_member(rank: int, argument: str, group: str, name: str) -> None:
    """Raise ValueError if a rank is not another one of the group."""
    check_member(rank, argument, group, name)
    if rank == (0 if world_size() == 1 else own_rank(group)):
        raise ValueError(f"{name}: {argument}={rank!r} is not allowed: it is this process. Name another rank.")


def to_checked_tensor(value: tf.Tensor, allowed: Types | None, name: str) -> tf.Tensor:
    """Return a tensor of an allowed type; of any numeric type if allowed is None."""
    tensor = tf.convert_to_tensor(value)
    checked_dtype(tensor.dtype.base_dtype, allowed, name)
    return tensor


def warn_if_variable(value: tf.Tensor) -> None:
    """Warn of a variable, which HCCL cannot reduce where it is."""
    if isinstance(value, tf.Variable):
        text = f"HCCL does not reduce a variable itself. Pass a tensor computed from {value.name}."
        warnings.warn(text, UserWarning, stacklevel=3)


def checked_dtype(dtype: tf.DType, allowed: Types | None, name: str) -> tf.DType:
    """Return a type if it is allowed, else raise TypeError."""
    if dtype == tf.string or (allowed is not None and dtype not in allowed):
        known = "numbers" if allowed is None else ", ".join(t.name for t in allowed)
        raise TypeError(
            f"{name}: a tensor of type {dtype.name} is not allowed, on the NPU or on the CPU. Cast it to one of "
            f"{known}."
        )
    return dtype
