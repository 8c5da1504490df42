"""HCCL's functions about ranks, groups and the split of gradients, with the vendor's names.

On a machine with cards HCCL answers for groups; elsewhere, and for what the
launch script has said, ``world`` and ``groups`` do. Collectives need one
process so far.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from npu_shim import _device, _env
from npu_shim.distributed import gradient_buckets, groups
from npu_shim.distributed.groups import Group, group, is_int
from npu_shim.distributed.world import WORLD, World, world, world_size


def hccl(module: str) -> Callable[[Callable], Callable]:
    """Decorator: on an NPU the function of the same name in HCCL's package answers."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def answer(*args: Any, **kwargs: Any) -> Any:
            if _device.device().is_npu:
                return getattr(_device.vendor(module), function.__name__)(*args, **kwargs)
            return function(*args, **kwargs)

        return answer

    return decorate


def get_rank_size(group: str = WORLD) -> int:
    """Number of ranks in a group; 1 on one process.

    Args:
        group: that create_group has made, or 'hccl_world_group'.
    Raises:
        TypeError, ValueError: there is no such group, or the variables of the job contradict each other.
    """
    if group == WORLD:
        return world_size()
    if _device.device().is_npu:
        return _device.vendor("hccl.manage.api").get_rank_size(group)
    return groups.group(group).size


def get_rank_id(group: str = WORLD) -> int:
    """This process's number in a group; 0 on one process.

    Args:
        group: that create_group has made, or 'hccl_world_group'.
    Raises:
        TypeError, ValueError: there is no such group, or the variables of the job contradict each other.
    """
    numbered_by_cards = _env.read().cm_chief_ip is not None and world_size() > 1
    if (group != WORLD or numbered_by_cards) and _device.device().is_npu:
        return _device.vendor("hccl.manage.api").get_rank_id(group)
    here = world()
    return groups.group(group, here).rank_of(here.rank)


@hccl("hccl.manage.api")
def get_local_rank_size(group: str = WORLD) -> int:
    """Number of the group's ranks on this server; 1 on one process."""
    return len(_local_ranks(group))


@hccl("hccl.manage.api")
def get_local_rank_id(group: str = WORLD) -> int:
    """This process's number among the group's ranks on this server; 0 on one process."""
    return _local_ranks(group).index(world().rank)


@hccl("hccl.manage.api")
def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The world's number of a rank of a group."""
    return groups.group(group).world_rank(_int(group_rank_id, "group_rank_id"))


@hccl("hccl.manage.api")
def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The group's number of a rank of the world."""
    return groups.group(group).rank_of(_int(world_rank_id, "world_rank_id"))


@hccl("hccl.manage.api")
def create_group(group: str, rank_num: int, rank_ids: Sequence[int]) -> None:
    """Makes a group of ranks. Each of its ranks calls this, and no other rank.

    Ranks in a group are numbered by their world rank, ascending.

    Args:
        group: its name, at most 127 bytes, not 'hccl_world_group', and not that of a group that exists.
        rank_num: how many ranks it has.
        rank_ids: their world numbers, each once.
    Raises:
        TypeError, ValueError: on other arguments, or where this process is not among rank_ids.
    """
    groups.create(group, rank_num, rank_ids)


@hccl("hccl.manage.api")
def destroy_group(group: str) -> None:
    """Drops a group, and the split strategy that was set for it.

    Raises:
        TypeError, ValueError: there is no such group.
    """
    groups.destroy(group)
    gradient_buckets.forget(group)


@hccl("hccl.split.api")
def set_split_strategy_by_idx(idxList: Sequence[int], group: str = WORLD) -> None:
    """Says with which gradients buckets end that are sent as one. Changes speed on several ranks, never a number.

    Args:
        idxList: growing indices of gradients, at most 8; the last is the last gradient.
        group: the group it is for.
    Raises:
        TypeError, ValueError: on other arguments.
    """
    gradient_buckets.set_by_index(idxList, group)


@hccl("hccl.split.api")
def set_split_strategy_by_size(dataSizeList: Sequence[float], group: str = WORLD) -> None:
    """Says which shares of the gradient bytes make a bucket; wins over set_split_strategy_by_idx.

    Changes speed on several ranks, never a number.

    Args:
        dataSizeList: at most 8 positive percentages which sum to 100.
        group: the group it is for.
    Raises:
        TypeError, ValueError: on other arguments.
    """
    gradient_buckets.set_by_size(dataSizeList, group)


def check_root(root_rank: Any, name: str) -> None:
    """Lets a rank pass that this job has.

    Raises:
        ValueError: it has none such.
    """
    size = world_size()
    if not is_int(root_rank) or not 0 <= root_rank < size:
        allowed = "this job has one rank, so it must be 0" if size == 1 else f"it must be 0 to {size - 1}"
        raise ValueError(f"{name}: root_rank={root_rank!r} is not allowed: {allowed}.")


def _local_ranks(name: str) -> list[int]:
    """The ranks of a group that are on this process's server, which is one of them."""
    here = world()
    members = groups.group(name, here)
    members.rank_of(here.rank)
    return [rank for rank in members.ranks if rank in here.local_ranks]


def _int(value: Any, name: str) -> int:
    if not is_int(value):
        raise TypeError(f"{name}={value!r} is not allowed: it must be an int.")
    return value


__all__: list[str] = [
    "Group",
    "WORLD",
    "World",
    "create_group",
    "destroy_group",
    "get_group_rank_from_world_rank",
    "get_local_rank_id",
    "get_local_rank_size",
    "get_rank_id",
    "get_rank_size",
    "get_world_rank_from_group_rank",
    "group",
    "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
    "world",
    "world_size",
]
