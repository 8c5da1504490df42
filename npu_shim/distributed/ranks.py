"""HCCL's functions for ranks, groups and gradient buckets, with the vendor's names.

On an NPU host HCCL answers for groups. Elsewhere, and for values that the launch
script sets, the answers come from ``world`` and ``groups``.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device, host_env
from npu_shim.distributed import gradient_buckets, groups
from npu_shim.distributed.groups import Group, find_group
from npu_shim.distributed.world import WORLD, World, world, world_size


def get_rank_size(group: str = WORLD) -> int:
    """Return the number of ranks in a group; 1 with one process.

    Args:
        group: the name passed to create_group, or 'hccl_world_group'.
    Raises:
        TypeError, ValueError: the group does not exist, or the variables of the job contradict each other.
    """
    if group == WORLD:
        return world_size()
    if host_device.is_npu():
        return host_device.import_vendor_module("hccl.manage.api").get_rank_size(group)
    return groups.find_group(group).size


def get_rank_id(group: str = WORLD) -> int:
    """Return the rank of this process in a group; 0 with one process.

    Args:
        group: the name passed to create_group, or 'hccl_world_group'.
    Raises:
        TypeError, ValueError: the group does not exist, or the variables of the job contradict each other.
    """
    numbered_by_npus = host_env.read_environment().cm_chief_ip is not None and world_size() > 1
    if (group != WORLD or numbered_by_npus) and host_device.is_npu():
        return host_device.import_vendor_module("hccl.manage.api").get_rank_id(group)
    here = world()
    return groups.find_group(group, here).rank_of(here.rank)


@host_device.prefer_vendor_function("hccl.manage.api")
def get_local_rank_size(group: str = WORLD) -> int:
    """Return the number of the group's ranks on this server; 1 with one process."""
    return len(_local_ranks(group))


@host_device.prefer_vendor_function("hccl.manage.api")
def get_local_rank_id(group: str = WORLD) -> int:
    """Return the number of this process among the group's ranks on this server; 0 with one process."""
    return _local_ranks(group).index(world().rank)


@host_device.prefer_vendor_function("hccl.manage.api")
def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the world rank of a rank of a group."""
    return groups.find_group(group).world_rank(_checked_int(group_rank_id, "group_rank_id"))


@host_device.prefer_vendor_function("hccl.manage.api")
def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Return the rank in a group of a world rank."""
    return groups.find_group(group).rank_of(_checked_int(world_rank_id, "world_rank_id"))


@host_device.prefer_vendor_function("hccl.manage.api")
def create_group(group: str, rank_num: int, rank_ids: Sequence[int]) -> None:
    """Create a group of ranks. Each of its ranks calls this function, and no other rank.

    Ranks in a group are numbered by their world rank, ascending.

    Args:
        group: a new name of at most 127 bytes, not 'hccl_world_group'.
        rank_num: number of ranks.
        rank_ids: their world ranks, each once.
    Raises:
        TypeError, ValueError: an argument is not allowed, or this process is not in rank_ids.
    """
    groups.create_group(group, rank_num, rank_ids)


@host_device.prefer_vendor_function("hccl.manage.api")
def destroy_group(group: str) -> None:
    """Remove a group and its split strategy.

    Raises:
        TypeError, ValueError: the group does not exist.
    """
    groups.destroy_group(group)
    gradient_buckets.remove_group_strategies(group)


@host_device.prefer_vendor_function("hccl.split.api")
def set_split_strategy_by_idx(idxList: Sequence[int], group: str = WORLD) -> None:
    """Set the last gradient of each gradient bucket. It changes the speed on several ranks, never a result.

    Args:
        idxList: increasing indices of gradients, at most 8; the last one is the last gradient.
        group: name of the group.
    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    gradient_buckets.set_bucket_ends(idxList, group)


@host_device.prefer_vendor_function("hccl.split.api")
def set_split_strategy_by_size(dataSizeList: Sequence[float], group: str = WORLD) -> None:
    """Set the share of each gradient bucket in all bytes. It has precedence over set_split_strategy_by_idx.

    It changes the speed on several ranks, never a result.

    Args:
        dataSizeList: at most 8 positive percentages that sum to 100.
        group: name of the group.
    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    gradient_buckets.set_bucket_percentages(dataSizeList, group)


def check_rank_exists(root_rank: object, name: str) -> None:
    """Check that this job has a rank.

    Raises:
        ValueError: the job does not have it.
    """
    size = world_size()
    if not isinstance(root_rank, int) or isinstance(root_rank, bool) or not 0 <= root_rank < size:
        allowed = "this job has one rank. Pass 0" if size == 1 else f"this job has {size} ranks. Pass 0 to {size - 1}"
        raise ValueError(f"{name}: root_rank={root_rank!r} is not allowed: {allowed}.")


def _local_ranks(name: str) -> list[int]:
    """Return the ranks of a group on this server; this process must be in the group."""
    here = world()
    members = groups.find_group(name, here)
    members.rank_of(here.rank)
    return [rank for rank in members.ranks if rank in here.local_ranks]


def _checked_int(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not allowed. Pass an int.")
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
    "find_group",
    "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
    "world",
    "world_size",
]
